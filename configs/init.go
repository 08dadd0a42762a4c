package configs

import (
	"bufio"
	"fmt"
	"io"
	"slices"

	"aibox/configs/internal/schema"
	"aibox/internal/nearest"
)

// Init prints a commented job file for a model and a format, ready to run once
// its paths fit. Unknown names are an error with the nearest valid ones.
func Init(w io.Writer, model, format string) error {
	formats := table.Find("data.format").Values
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
	out := bufio.NewWriter(w)
	fmt.Fprintf(out, "# Trains the model %s on %s files:\n#\n#     aibox config check JOB.yaml\n#     aibox train JOB.yaml\n#\n", model, format) //nolint:errcheck // out keeps it
	own := "data.train, data.eval"
	if format != "criteo" {
		own += ", data.columns"
	}
	schema.Comment(out, "", "Set "+own+" and output.model_dir to your own first. Keys that are commented out"+
		" show their defaults. Paths may contain {{date}}, {{date -1d}} and environment variables such as ${HOME}.")
	table.Commented(out, job, job.isGiven)
	return out.Flush()
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
