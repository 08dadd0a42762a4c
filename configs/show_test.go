package configs

import (
	"bytes"
	"reflect"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// checkRoundTrip shows j, loads what was shown and compares.
func checkRoundTrip(t rapid.TB, j *Job) {
	t.Helper()
	var b bytes.Buffer
	if err := j.Show(&b); err != nil {
		t.Fatal(err)
	}
	again, err := Parse("shown.yaml", b.Bytes(), LoadOptions{Env: noEnv, Now: func() time.Time { return j.Date }})
	if err != nil {
		t.Fatalf("%v\n%s", err, b.String())
	}
	var second bytes.Buffer
	if err := again.Show(&second); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(strings.Join(strings.SplitN(second.String(), "\n", 3)[2:], ""), "# default") {
		t.Errorf("something shown was not taken as given:\n%s", second.String())
	}
	a, z := *j, *again
	a.given, z.given, a.file, z.file, z.DateGiven, z.Dated = nil, nil, "", "", a.DateGiven, a.Dated
	z.plainName, z.modelDir, z.hourly = a.plainName, a.modelDir, a.hourly // templates are not shown
	z.notes, z.warnings = a.notes, a.warnings                             // what is shown has a timezone, and no key without effect
	if !reflect.DeepEqual(a, z) {
		t.Errorf("round trip:\n%+v\n%+v\n%s", a, z, b.String())
	}
}

func TestShowRoundTrip(t *testing.T) {
	checkRoundTrip(t, mustParse(t, smallJob))
	for _, kind := range ModelKinds {
		// fm needs two fields.
		checkRoundTrip(t, mustParse(t, strings.Replace(smallJob, "- {name: user}", "- {name: user}\n    - {name: item}", 1), "model.kind="+kind))
	}
	for _, set := range []string{
		`output.model_dir="a b: #c"`, `data.delimiter="\t"`, `data.columns[2].separator="|"`, "optimizer.rows.kind=ftrl",
		"optimizer.dense.kind=adamw", "optimizer.schedule={decay: cosine, decay_steps: 1e6}", "data.columns[1].missing=-1e-7",
		"training={epochs: 2}", `name="null"`, `name="{x"`, `data.columns[2].separator="\u0001"`, `data.columns[2].separator="\u00e9\n"`,
		"data.columns[1].transform=[{standardize: {mean: 1, std: 2}}, standardize, {bucketize: {boundaries: [1,2.5]}}]",
		`name=""`, `data.columns[2].space=""`, `output.metrics=""`, `output.tensorboard=""`, `data.columns[0].name="click "`, `data.columns[0].name="x > 2"`,
		`data.columns[2].name="12"`, `data.train=["hdfs://ns/a:b", "x:80/y", "-", "true", "...", "*", "a,b", "..", "Null", "no", "0x1F"]`,
	} {
		checkRoundTrip(t, mustParse(t, smallJob, set))
	}
	checkRoundTrip(t, mustParse(t, smallJob, "data.eval=[a]", "training={epochs: 3, early_stopping: {}}",
		"generate={fields: [{name: u, cardinality: 1e9}, {name: m, cardinality: 5, repeat: 2, max_values: 3}], dense_columns: 2}"))
	checkRoundTrip(t, mustParse(t, "data: {format: criteo, train: [a], columns: [{name: C2, space: C1}]}\nmodel: {kind: aibox}\noutput: {model_dir: m}"))
	checkRoundTrip(t, mustParse(t, "data: {format: libsvm, train: [a]}\nmodel: {kind: lr}\noutput: {model_dir: m}"))
	checkRoundTrip(t, mustParse(t, "data: {format: libffm, train: [a], label: label > 3, columns: [{name: a, field: 0}]}\nmodel: {kind: lr}\noutput: {model_dir: m}"))
}

func TestShowMarksDefaults(t *testing.T) {
	var b bytes.Buffer
	if err := mustParse(t, smallJob).Show(&b); err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{
		"  kind: deepfm\n",
		"  batch_size: 512  # default: Examples per mini-batch",
		"    - {name: user, role: sparse, separator: \"\", weight_separator: \"\", space: user}  # default: role, separator, weight_separator, space\n",
		"    # role: label is what is predicted",
	} {
		if !strings.Contains(b.String(), line) {
			t.Errorf("no line %q in\n%s", line, b.String())
		}
	}
	if strings.Contains(b.String(), "cross_layers") || strings.Contains(b.String(), "generate") {
		t.Errorf("keys without effect shown:\n%s", b.String())
	}
}
