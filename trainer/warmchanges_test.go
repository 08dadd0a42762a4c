package trainer

import (
	"log/slog"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestWarmStartSaysWhatChanged: what a warm start leaves behind of the earlier model, and what it
// reads in another way, is logged, and nothing else.
func TestWarmStartSaysWhatChanged(t *testing.T) {
	kind := []string{"wide_deep", "model.hidden_layers=[8, 4]", `data.null_values=["", "NA"]`}
	dir, _ := firstNight(t, kind[0], kind[1:]...)
	said := regexp.MustCompile(`(?m)msg="warm start: (?:.*(?:no longer used|another way).*)$`)
	for set, want := range map[string][]string{
		"seed=7":                                       nil,
		`data.null_values=["NA"]`:                      nil, // an empty cell is missing in any case
		`data.null_values=["", "-"]`:                   {"what=data.null_values earlier=[NA] now=[-]"},
		"data.quoting=rfc4180":                         {"what=data.quoting earlier=none now=rfc4180"},
		"model.pooling=mean":                           {"columns.tags.pooling earlier=sum now=mean", "columns.user.pooling", "columns.item.pooling", "columns.region.pooling"},
		"data.columns[1].missing=0.5":                  {"columns.D1.missing earlier=indicator now=0.5", "features=[D1.missing]"},
		"data.columns[1].missing=0":                    {"features=[D1.missing]"},
		"data.columns[1].transform=[{clip: {min: 1}}]": {`columns.D1.transform earlier=[log1p] now="[clip {min: 1}]"`},
		"data.columns[1]={name: D1}":                   {"columns.D1.role earlier=dense now=sparse", `features="[D1 D1.missing]"`},
		"data.columns[2].role=ignore":                  {`features="[D2 D2.missing]"`},
		"data.columns[4]={name: user, space: visitor}": {"columns.user.space earlier=user now=visitor", "space=user"},
		"data.columns[6].separator=+":                  {`columns.tags.separator earlier=| now=+`},
		"model.hidden_layers=[8]":                      {`parameters="[deep/1/weight deep/1/bias]"`},
	} {
		var log strings.Builder
		j := job(t, kind[0], append(slices.Clip(kind[1:]), set, "data.limit=64", "training.accept_diverged=true", "training.warm_start="+dir)...)
		if _, err := Train(t.Context(), j, Options{Logger: slog.New(slog.NewTextHandler(&log, nil))}); err != nil {
			t.Fatal(set, err)
		}
		got := said.FindAllString(log.String(), -1)
		if len(got) != len(want) || slices.ContainsFunc(want, func(w string) bool { return !strings.Contains(strings.Join(got, "\n"), w) }) {
			t.Errorf("%s:\n%s\nwant %q", set, strings.Join(got, "\n"), want)
		}
	}
}

// TestWarmStartSaysWhichDefaultsChanged: a job that takes defaults with which the earlier model was
// not trained, as where a newer version has others, says so; what the job file has is what is
// wanted.
func TestWarmStartSaysWhichDefaultsChanged(t *testing.T) {
	dir, _ := firstNight(t, "fm", "optimizer.rows.learning_rate=0.07", "optimizer.dense.learning_rate=0.02", "data.limit=640")
	for set, want := range map[string]string{
		"seed=7":                            `keys="optimizer.dense.learning_rate, optimizer.rows.learning_rate"`,
		"optimizer.rows.learning_rate=0.06": `keys=optimizer.dense.learning_rate `,
		"optimizer.rows={kind: adam, learning_rate: 0.06}":                      `keys=optimizer.dense.learning_rate `, // adagrad has no beta1
		"optimizer={rows: {learning_rate: 0.06}, dense: {learning_rate: 0.03}}": "",
	} {
		var log strings.Builder
		j := job(t, "fm", set, "data.limit=64", "training.accept_diverged=true", "training.warm_start="+dir)
		if _, err := Train(t.Context(), j, Options{Logger: slog.New(slog.NewTextHandler(&log, nil))}); err != nil {
			t.Fatal(set, err)
		}
		if said := strings.Contains(log.String(), "the defaults that this job takes"); said != (want != "") || !strings.Contains(log.String(), want) {
			t.Errorf("%s: want %s:\n%s", set, want, log.String())
		}
	}
}
