package trainer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"aibox/configs"
	"aibox/gpu/emulated"
	"aibox/internal/errkind"
	"aibox/internal/testseed"
	"aibox/trainer/modeldir"
	"aibox/trainer/program"
)

// TestMetricsBeforeALossThatIsNotFinite checks that the lines of metrics of all steps before one
// whose loss is not finite are written, and are those of a job that ends before that step, although
// metrics are computed while the next step runs. That also holds if the run was resumed from a
// snapshot, and if the job is repeated.
func TestMetricsBeforeALossThatIsNotFinite(t *testing.T) {
	const (
		batch = 2
		good  = 21 // steps; the last one makes a parameter so large that the loss of the next is not finite
	)
	var text strings.Builder
	text.WriteString("label\tD1\tD2\tD3\tuser\titem\ttags\tregion\n")
	for i := range (good + 9) * batch {
		d1 := "1"
		if i >= (good-1)*batch {
			d1 = "1e30"
		}
		fmt.Fprintf(&text, "%d\t%s\t0\t0\tu%d\ti%d\tt\tr\n", i%3/2, d1, i%7, i%5)
	}
	log := filepath.Join(t.TempDir(), "train.tsv")
	if err := os.WriteFile(log, []byte(text.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	seed := testseed.Of(t)
	for name, c := range map[string]struct {
		every int // steps of a line
		set   []string
	}{
		"each step":       {1, nil},
		"three steps":     {3, nil},
		"device":          {1, []string{"engine.kind=cuda", "engine.devices=[0]"}},
		"rows on devices": {4, []string{"engine.kind=cuda", "engine.devices=[0, 1]", "engine.embeddings=device"}},
	} {
		t.Run(name, func(t *testing.T) {
			newJob := func(set ...string) (*configs.Job, func() []byte) {
				file := filepath.Join(t.TempDir(), "metrics.jsonl")
				j := job(t, "lr", append(append([]string{
					"data.train=[" + log + "]", "data.eval=[]", "data.shuffle_buffer=0", `data.group_by=""`, "data.columns[1].transform=[]", "data.columns[2].transform=[]",
					fmt.Sprint("training.batch_size=", batch), "optimizer.dense={kind: sgd, learning_rate: 1}", "snapshots.every=1 pass",
					"output.metrics=" + file, fmt.Sprint("output.log_every=", c.every), "training.accept_diverged=true", "model.initial_bias=0",
				}, c.set...), set...)...)
				return j, func() []byte {
					lines, err := os.ReadFile(file)
					if err != nil {
						t.Fatal(err)
					}
					return lines
				}
			}
			platform := func() *emulated.Platform { return devices(seed, 2) }
			before, lines := newJob(fmt.Sprint("data.limit=", good*batch))
			if _, err := trainOn(t, before, platform(), nil); err != nil {
				t.Fatal(err)
			}
			want := lines()
			for n := good / c.every; bytes.Count(want, []byte("\n")) > n; { // the epoch has a last line of its own
				want = want[:1+bytes.LastIndexByte(want[:len(want)-1], '\n')]
			}
			fails := func(what string, j *configs.Job, want []byte, lines func() []byte) {
				_, err := trainOn(t, j, platform(), nil)
				var again *ResumableError
				if !errors.Is(err, program.ErrNotFinite) || errkind.Of(t.Context(), err) != errkind.Diverged || errors.As(err, &again) {
					t.Errorf("%s: %v", what, err)
				}
				if got := lines(); !bytes.Equal(got, want) {
					t.Errorf("%s: the lines are\n%s\nwant\n%s", what, got, want)
				}
				if _, err := modeldir.Open(j.Output.ModelDir); !errors.Is(err, modeldir.ErrNoModel) {
					t.Errorf("%s: there is a model: %v", what, err)
				}
			}
			j, lines := newJob()
			fails("at once", j, want, lines)
			fails("repeated", j, append(bytes.Clone(want), want...), lines)
			j, lines = newJob()
			passes := 0
			crash := func(o *Options) {
				o.afterPass = func(_ context.Context, r *run) error {
					r.snapshots.wait()
					if passes++; passes < 3 {
						return nil
					}
					return errCrash
				}
			}
			if _, err := trainOn(t, j, platform(), crash); !errors.Is(err, errCrash) {
				t.Fatalf("the run was to be killed, but %v", err)
			}
			fails("resumed", j, want, lines)
		})
	}
}
