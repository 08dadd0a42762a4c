package login

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/jcmturner/gokrb5/v8/config"
)

// loadConf reads krb5.conf. paths may be a list separated by colons, as in
// $KRB5_CONFIG. gokrb5 does not support include directives, of which the files of Red
// Hat and of many sites consist, and keeps only the last of several sections with the
// same name; so the files are first combined into one.
func loadConf(paths string) (*config.Config, error) {
	m := merger{sections: make(map[string][]string)}
	for _, path := range strings.Split(paths, ":") {
		if err := m.file(path, 0); err != nil {
			return nil, fmt.Errorf("krb5.conf: %w", err)
		}
	}
	var b strings.Builder
	for _, name := range m.order {
		fmt.Fprintf(&b, "[%s]\n%s\n", name, strings.Join(m.sections[name], "\n"))
	}
	conf, err := config.NewFromString(b.String())
	if errors.As(err, new(config.UnsupportedDirective)) && conf != nil {
		err = nil // the file has Kerberos 4 settings, which are not needed
	}
	if err != nil {
		return nil, fmt.Errorf("krb5.conf %s: %w", paths, err)
	}
	return conf, nil
}

type merger struct {
	order    []string
	sections map[string][]string
}

// maxIncludeDepth is how deep includes may be nested. It stops files that include one
// another.
const maxIncludeDepth = 10

// includedName matches the names of the files of an included directory that are read,
// as in MIT Kerberos.
var includedName = regexp.MustCompile(`^[A-Za-z0-9_-]+$|\.conf$`)

func (m *merger) file(path string, depth int) error {
	if depth > maxIncludeDepth {
		return fmt.Errorf("%s: includes nested more than %d deep", path, maxIncludeDepth)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	section := ""
	for line := range strings.Lines(string(data)) {
		line = strings.TrimSpace(line)
		switch word, arg, _ := strings.Cut(line, " "); {
		case line == "" || line[0] == '#' || line[0] == ';':
		case word == "include":
			if err := m.file(strings.TrimSpace(arg), depth+1); err != nil {
				return err
			}
		case word == "includedir":
			if err := m.dir(strings.TrimSpace(arg), depth+1); err != nil {
				return err
			}
		case line[0] == '[':
			section, _, _ = strings.Cut(line[1:], "]")
			if _, ok := m.sections[section]; !ok {
				m.order = append(m.order, section)
				m.sections[section] = nil
			}
		case section != "":
			m.sections[section] = append(m.sections[section], line)
		}
	}
	return nil
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
