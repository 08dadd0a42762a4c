package hadoop

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// siteConf holds the values of core-site.xml and hdfs-site.xml by key. They are read as Hadoop
// reads them: final values cannot be overridden, files may include others, deprecated keys have new
// names, and values may refer to other keys and to environment variables. The client library only
// reads keys and values.
type siteConf map[string]string

// is compares a value as Hadoop compares words such as true and kerberos.
func (conf siteConf) is(key, word string) bool { return strings.EqualFold(conf[key], word) }

// list splits a value at its commas.
func (conf siteConf) list(key string) (items []string) {
	for item := range strings.SplitSeq(conf[key], ",") {
		if item = strings.TrimSpace(item); item != "" {
			items = append(items, item)
		}
	}
	return items
}

// newNames maps deprecated keys to their new names.
var newNames = map[string]string{
	"fs.default.name":                 "fs.defaultFS",
	"dfs.federation.nameservices":     "dfs.nameservices",
	"dfs.encryption.key.provider.uri": "hadoop.security.key.provider.path",
}

// loadSite reads the files of a directory; it returns nil if there are none.
func loadSite(dir string) (siteConf, error) {
	l := siteLoader{conf: siteConf{}, final: map[string]bool{}}
	found := false
	for _, name := range []string{"core-site.xml", "hdfs-site.xml"} {
		path := filepath.Join(dir, name)
		if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err := l.file(path, 0); err != nil {
			return nil, err
		}
		found = true
	}
	if !found {
		return nil, nil
	}
	l.conf.substitute()
	return l.conf, nil
}

type siteLoader struct {
	conf  siteConf
	final map[string]bool
}

// maxSiteDepth is how deep includes may be nested. It stops files that include one another.
const maxSiteDepth = 10

func (l *siteLoader) file(path string, depth int) error {
	if depth > maxSiteDepth {
		return fmt.Errorf("%s: includes nested more than %d deep", path, maxSiteDepth)
	}
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close() // it was only read
	if err := l.elements(f, path, depth); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

func (l *siteLoader) elements(r io.Reader, path string, depth int) error {
	d := xml.NewDecoder(r)
	d.CharsetReader = func(charset string, in io.Reader) (io.Reader, error) {
		return in, nil // the keys and values that matter are ASCII, a subset of all common charsets
	}
	for {
		token, err := d.Token()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		start, ok := token.(xml.StartElement)
		if !ok {
			continue
		}
		switch start.Name.Local {
		case "property":
			err = l.property(d, &start)
		case "include":
			err = l.include(d, &start, path, depth)
		case "configuration":
		default:
			err = d.Skip()
		}
		if err != nil {
			return err
		}
	}
}

// property reads a key and its value, which are elements or attributes.
func (l *siteLoader) property(d *xml.Decoder, start *xml.StartElement) error {
	var p struct {
		Name  string  `xml:"name"`
		Value *string `xml:"value"`
		Final string  `xml:"final"`
	}
	if err := d.DecodeElement(&p, start); err != nil {
		return err
	}
	for _, a := range start.Attr {
		switch a.Name.Local {
		case "name":
			p.Name = a.Value
		case "value":
			p.Value = &a.Value
		case "final":
			p.Final = a.Value
		}
	}
	key := strings.TrimSpace(p.Name)
	if name, ok := newNames[key]; ok {
		key = name
	}
	if l.final[key] {
		return nil
	}
	if p.Value != nil {
		l.conf[key] = strings.TrimSpace(*p.Value)
	}
	l.final[key] = strings.TrimSpace(p.Final) == "true"
	return nil
}

// include reads the file that an xi:include names, or its fallback if there is no such file.
func (l *siteLoader) include(d *xml.Decoder, start *xml.StartElement, path string, depth int) error {
	var i struct {
		Href     string `xml:"href,attr"`
		Fallback *struct {
			Inner string `xml:",innerxml"`
		} `xml:"fallback"`
	}
	if err := d.DecodeElement(&i, start); err != nil {
		return err
	}
	file := strings.TrimPrefix(strings.TrimPrefix(strings.TrimSpace(i.Href), "file:"), "//")
	if strings.Contains(file, "://") {
		return fmt.Errorf("it includes %s, but only files can be included", i.Href)
	}
	if !filepath.IsAbs(file) {
		file = filepath.Join(filepath.Dir(path), file)
	}
	if _, err := os.Stat(file); err != nil && i.Fallback != nil {
		return l.elements(strings.NewReader(i.Fallback.Inner), path, depth)
	}
	return l.file(file, depth+1)
}

var confVariable = regexp.MustCompile(`\$\{([^{}$\s]+)\}`)

// substitute replaces ${key}, ${env.NAME} and ${env.NAME:-default} in values. A reference to an
// unknown name stays as it is.
func (conf siteConf) substitute() {
	const maxDepth = 20 // as in Hadoop
	for key, value := range conf {
		for range maxDepth {
			next := confVariable.ReplaceAllStringFunc(value, func(v string) string {
				if s, ok := conf.variable(v[2 : len(v)-1]); ok {
					return s
				}
				return v
			})
			if next == value {
				break
			}
			value = next
		}
		conf[key] = value
	}
}

// variable returns the value of the text between ${ and }.
func (conf siteConf) variable(name string) (string, bool) {
	env, ok := strings.CutPrefix(name, "env.")
	if !ok {
		s, ok := conf[name]
		return s, ok
	}
	if name, byDefault, found := strings.Cut(env, "-"); found { // after :-, the default also replaces an empty value
		variable, evenEmpty := strings.CutSuffix(name, ":")
		if s, ok := os.LookupEnv(variable); ok && (s != "" || !evenEmpty) {
			return s, true
		}
		return byDefault, true
	}
	return os.LookupEnv(env)
}
