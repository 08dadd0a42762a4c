package configs

import (
	"bufio"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"

	"aibox/internal/nearest"
)

// Init prints a commented job file for a model and a format, ready to run once
// its paths fit. Unknown names are an error with the nearest valid ones.
func Init(w io.Writer, model, format string) error {
	formats := keyIndex["data.format"].Values
	if !slices.Contains(ModelKinds, model) {
		return fmt.Errorf("%s is not a model%s", nearest.Quote(model), nearest.Suggest(model, ModelKinds))
	}
	if !slices.Contains(formats, format) {
		return fmt.Errorf("%s is not a format%s", nearest.Quote(format), nearest.Suggest(format, formats))
	}
	job, err := Parse(model+"-"+format+".yaml", []byte(initSkeleton(model, format)), LoadOptions{Env: func(string) (string, bool) { return "", false }})
	if err != nil {
		panic("configs: skeleton of " + model + " and " + format + ": " + err.Error())
	}
	p := &initPrinter{printer{w: bufio.NewWriter(w), job: job}}
	p.linef("# Trains the model %s on %s files:", model, format)
	p.linef("#")
	p.linef("#     aibox config check JOB.yaml")
	p.linef("#     aibox train JOB.yaml")
	p.linef("#")
	own := "data.train, data.eval"
	if format != "criteo" {
		own += ", data.columns"
	}
	p.wrap("", "Set "+own+" and output.model_dir to your own first. Keys that are commented out"+
		" show their defaults. Paths may contain {{date}}, {{date -1d}} and environment variables such as ${HOME}.")
	p.mapping("", "", "", reflect.ValueOf(job).Elem())
	return p.w.Flush()
}

// initSkeleton is the part of a new job file that depends on model and format.
func initSkeleton(model, format string) string {
	files := map[string][2]string{
		"criteo":  {"data/day_0.gz", "data/day_1.gz"},
		"csv":     {"data/train/*.csv.gz", "data/eval/*.csv.gz"},
		"tsv":     {"data/train/*.tsv.gz", "data/eval/*.tsv.gz"},
		"libsvm":  {"data/train.libsvm", "data/eval.libsvm"},
		"libffm":  {"data/train.libffm", "data/eval.libffm"},
		"parquet": {"data/train/*.parquet", "data/eval/*.parquet"},
	}[format]
	aibox := model == "aibox"
	group := func(name string) string {
		if aibox {
			return ", group: " + name
		}
		return ""
	}
	columns := ""
	switch format {
	case "csv", "tsv", "parquet":
		separator := `, separator: "|"`
		if format == "parquet" {
			separator = "" // a list column
		}
		columns = `
    - {name: click, role: label}
    - {name: user_age, role: dense, transform: [standardize]` + group("user") + `}
    - {name: ad_price, role: dense, transform: [log1p]` + group("ad") + `}
    - {name: user_id, role: sparse}
    - {name: ad_id, role: sparse}
    - {name: query_terms, role: sparse` + separator + `}`
	case "libsvm":
		columns = `
    - {name: user_age, role: dense, range: [1, 1], transform: [standardize]` + group("user") + `}
    - {name: ad_price, role: dense, range: [2, 2], transform: [log1p]` + group("ad") + `}
    - {name: user, role: sparse, range: [3, 999999]}
    - {name: ad, role: sparse, range: [1000000, 1999999]}`
	case "libffm":
		columns = `
    - {name: user, role: sparse, field: 0}
    - {name: ad, role: sparse, field: 1}
    - {name: ad_price, role: dense, field: 2, transform: [log1p]}`
	case "criteo":
		columns = " []"
	}
	towers := ""
	if aibox && format == "criteo" {
		towers = `
  towers:
    - {name: low, dense: [I1, I2, I3, I4, I5, I6], layers: [128, 64]}
    - {name: high, dense: [I7, I8, I9, I10, I11, I12, I13], layers: [128, 64]}`
	}
	return fmt.Sprintf(`data:
  train: [%q]
  eval: [%q]
  format: %s
  columns:%s
model:
  kind: %s%s
output:
  model_dir: model
`, files[0], files[1], format, columns, model, towers)
}

// initPrinter prints every key with an explanation in front of it.
type initPrinter struct{ printer }

// mapping prints the keys of v, with lead in front of each line: lead is spaces
// and, if all of v is commented out, a #. An explanation has a space after its #,
// and a key has none, so that removing the # of a key puts it into effect.
func (p *initPrinter) mapping(lead, path, pattern string, v reflect.Value) {
	for i, tag := range fieldNames(v.Type()) {
		if tag == "" || path == "" && tag == "generate" {
			continue
		}
		k := keyIndex[join(pattern, tag)]
		f := v.Field(i)
		s := scope{job: p.job, parent: v, path: join(path, tag)}
		// An optional mapping is shown with its defaults, commented out.
		why, _ := useless(s, k, nil)
		optional := why == "" && f.Kind() == reflect.Pointer && f.IsNil() && k.typ.Kind() == reflect.Struct
		if p.absent(s, k, f) && !optional {
			continue
		}
		if optional {
			f = reflect.New(f.Type().Elem())
			walk(p.job, s.path, k.Path, f.Elem(), func(s scope, k *Key, v reflect.Value) {
				text := k.Default
				if k.DefaultFrom != nil {
					text = k.DefaultFrom(s)
				}
				if why, _ := useless(s, k, nil); why != "" || text == "" {
					return
				}
				l := &loader{opts: LoadOptions{}, job: p.job}
				l.setDefault(s.path, k, text, v)
			})
		}
		f = reflect.Indirect(f)
		if path == "" {
			p.linef("")
		}
		p.wrap(lead, describe(k))
		keyLead := lead
		if k.Tuning && !p.given(s.path) && !strings.Contains(lead, "#") {
			keyLead += "#"
		}
		switch {
		case k.typ.Kind() == reflect.Struct:
			p.linef("%s%s:", keyLead, tag)
			p.mapping(keyLead+"  ", s.path, k.Path, f)
		case f.Kind() == reflect.Slice && f.Type().Elem().Kind() == reflect.Struct:
			p.list(keyLead, tag, s.path, k, f)
		default:
			p.linef("%s%s: %s", keyLead, tag, flowValue(f))
		}
	}
}

// list prints a list of mappings, without the keys that have their defaults. The
// meanings of the keys come before the list.
func (p *initPrinter) list(lead, tag, path string, k *Key, v reflect.Value) {
	var lines []string
	for i := range v.Len() {
		elem := v.Index(i)
		var parts []string
		for n, name := range fieldNames(elem.Type()) {
			at := fmt.Sprintf("%s[%d].%s", path, i, name)
			// Default towers are printed in full, as users will want to change them.
			if p.given(at) || path == "model.towers" {
				parts = append(parts, name+": "+flowValue(reflect.Indirect(elem.Field(n))))
			}
		}
		if parts != nil {
			lines = append(lines, lead+"  - {"+strings.Join(parts, ", ")+"}")
		}
	}
	for _, sub := range keyTable {
		name, ok := strings.CutPrefix(sub.Path, k.Path+"[].")
		if ok && !strings.Contains(name, ".") && !formatUnused(sub, p.job.Data.Format) {
			p.wrap(lead, "- "+name+": "+describe(sub))
		}
	}
	if lines == nil { // criteo needs no columns: an example takes their place
		p.linef("%s#%s: [{name: C1, role: ignore}]", lead, tag)
		return
	}
	p.linef("%s%s:", lead, tag)
	for _, line := range lines {
		p.linef("%s", line)
	}
}

// formatUnused reports whether the format never uses the key.
func formatUnused(k *Key, format string) bool {
	return slices.ContainsFunc(k.When, func(w When) bool { return w.Path == "data.format" && !slices.Contains(w.In, format) })
}

// describe returns the meaning of a key and the values that it may have.
func describe(k *Key) string {
	allowed := k.Allowed()
	if allowed == "" || len(k.Values) > 0 && strings.Contains(k.Meaning, k.Values[len(k.Values)-1]) {
		return k.Meaning
	}
	return k.Meaning + " Allowed: " + allowed + "."
}

// wrap prints a comment in lines of about 80 columns.
func (p *initPrinter) wrap(lead, text string) {
	line, hang := "", ""
	if strings.HasPrefix(text, "- ") {
		hang = "  " // further lines of an item are indented to its text
	}
	flush := func() { p.linef("%s# %s", lead, line) }
	words := strings.Fields(text)
	for i := 0; i < len(words); i++ {
		word := words[i]
		for strings.Count(word, "{{") > strings.Count(word, "}}") && i+1 < len(words) {
			i++ // {{date -1d}} is one word
			word += " " + words[i]
		}
		switch {
		case line == "":
			line = word
		case len(lead)+2+len(line)+1+len(word) > 80:
			flush()
			line = hang + word
		default:
			line += " " + word
		}
	}
	flush()
}
