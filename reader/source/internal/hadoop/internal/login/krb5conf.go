package login

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/jcmturner/gokrb5/v8/config"
)

// krb5Conf is a krb5.conf as gokrb5 understands it, and the ticket cache that it names.
type krb5Conf struct {
	*config.Config
	cache string // default_ccache_name; "": none is named
}

// loadConf reads krb5.conf. As in $KRB5_CONFIG, paths may be a list separated by colons, and some
// of the files may be missing. The files are first combined into one, because gokrb5 differs from
// MIT's library. It does not support include directives, which Red Hat and many sites use. It keeps
// only the last of several sections or realms with the same name, while MIT's library joins them.
// It keeps the last of several values, while MIT's keeps the first. Some of its defaults differ,
// too.
func loadConf(paths string) (*krb5Conf, error) {
	m := merger{sections: make(map[string][]string), realms: make(map[string][]string), values: make(map[string]string)}
	var missing error
	found := false
	for path := range strings.SplitSeq(paths, ":") {
		if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
			missing = err
			continue
		}
		found = true
		if err := m.file(path, 0); err != nil {
			return nil, fmt.Errorf("krb5.conf: %w", err)
		}
	}
	if !found {
		return nil, fmt.Errorf("krb5.conf: %w", missing)
	}
	conf, err := config.NewFromString(m.text())
	if errors.As(err, new(config.UnsupportedDirective)) && conf != nil {
		err = nil // the file has Kerberos 4 settings, which are not needed
	}
	if err != nil {
		return nil, fmt.Errorf("krb5.conf %s: %w", paths, err)
	}
	return &krb5Conf{conf, m.values["libdefaults default_ccache_name"]}, nil
}

// merger combines files.
type merger struct {
	sections map[string][]string // their lines, except those of realms
	realms   map[string][]string // their lines, by "NAME = {"
	order    []string            // of the realms
	values   map[string]string   // the first of each setting outside of realms, by section and name

	place // of the current line
}

// place is where in a file a line stands.
type place struct {
	section, realm string
	depth          int // of nested braces in the realm
}

// defaultTypes are the encryption types that gokrb5 supports, in the order of MIT's library.
const defaultTypes = "aes256-cts-hmac-sha1-96 aes128-cts-hmac-sha1-96 aes256-cts-hmac-sha384-192 aes128-cts-hmac-sha256-128 des3-cbc-sha1 arcfour-hmac"

func (m *merger) text() string {
	var b strings.Builder
	b.WriteString("[libdefaults]\n")
	if m.values["libdefaults dns_lookup_kdc"] == "" {
		b.WriteString("dns_lookup_kdc = true\n")
	}
	for _, name := range []string{"default_tkt_enctypes", "default_tgs_enctypes"} {
		if m.values["libdefaults "+name] == "" {
			fmt.Fprintf(&b, "%s = %s\n", name, cmp.Or(m.values["libdefaults permitted_enctypes"], defaultTypes))
		}
	}
	fmt.Fprintf(&b, "%s\n[domain_realm]\n%s\n[realms]\n", strings.Join(m.sections["libdefaults"], "\n"), strings.Join(m.sections["domain_realm"], "\n"))
	for _, realm := range m.order {
		fmt.Fprintf(&b, "%s\n%s\n}\n", realm, strings.Join(m.realms[realm], "\n"))
	}
	return b.String()
}

// maxIncludeDepth is how deep includes may be nested. It stops files that include one
// another.
const maxIncludeDepth = 10

// includedName matches the names of those files of an included directory that are read, as in MIT
// Kerberos.
var includedName = regexp.MustCompile(`^[A-Za-z0-9_-]+$|\.conf$`)

// file adds a file. As in MIT's library, the file begins outside of any section, and the file that
// includes it goes on in the section and realm where it was.
func (m *merger) file(path string, depth int) error {
	if depth > maxIncludeDepth {
		return fmt.Errorf("%s: includes nested more than %d deep", path, maxIncludeDepth)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	defer func(outer place) { m.place = outer }(m.place)
	m.place = place{}
	for line := range strings.Lines(string(data)) {
		line = strings.TrimSpace(line)
		switch words := strings.Fields(line); {
		case line == "" || line[0] == '#' || line[0] == ';':
		case words[0] == "include" && len(words) == 2:
			err = m.file(words[1], depth+1)
		case words[0] == "includedir" && len(words) == 2:
			err = m.dir(words[1], depth+1)
		case line[0] == '[':
			section, _, _ := strings.Cut(line[1:], "]")
			m.place = place{section: section}
		default:
			m.line(line)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// line adds a line of a section.
func (m *merger) line(line string) {
	name, value, _ := strings.Cut(line, "=")
	name, value = strings.TrimSpace(name), strings.TrimSpace(value)
	if m.section == "realms" {
		switch {
		case m.depth == 0 && strings.HasPrefix(value, "{"):
			m.realm = name + " = {"
			if !slices.Contains(m.order, m.realm) {
				m.order = append(m.order, m.realm)
			}
			m.depth = 1
			return
		case strings.Contains(line, "{"):
			m.depth++
		case strings.Contains(line, "}"):
			m.depth--
		}
		if m.depth > 0 {
			m.realms[m.realm] = append(m.realms[m.realm], line)
		}
		return
	}
	if key := m.section + " " + name; m.values[key] == "" {
		if strings.HasSuffix(name, "_enctypes") {
			value = typesOf(value)
		}
		m.values[key] = value
		m.sections[m.section] = append(m.sections[m.section], name+" = "+value)
	}
}

// families maps names for several encryption types, and short names that gokrb5 does not know, to
// types.
var families = map[string]string{
	"aes":     "aes256-cts-hmac-sha1-96 aes128-cts-hmac-sha1-96 aes256-cts-hmac-sha384-192 aes128-cts-hmac-sha256-128",
	"des3":    "des3-cbc-sha1",
	"rc4":     "arcfour-hmac",
	"DEFAULT": defaultTypes,
}

// typesOf returns a list of encryption types, separated by commas or spaces, in the form that
// gokrb5 understands.
func typesOf(list string) string {
	types := strings.FieldsFunc(list, func(r rune) bool { return r == ',' || unicode.IsSpace(r) })
	for i, t := range types {
		types[i] = cmp.Or(families[t], t)
	}
	return strings.Join(types, " ")
}

func (m *merger) dir(path string, depth int) error {
	entries, err := os.ReadDir(path) // in byte order of the names
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.IsDir() || strings.HasPrefix(e.Name(), ".") || !includedName.MatchString(e.Name()) {
			continue
		}
		if err := m.file(filepath.Join(path, e.Name()), depth); err != nil {
			return err
		}
	}
	return nil
}
