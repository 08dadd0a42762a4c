package trainer

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"aibox/internal/errkind"
	"aibox/trainer/modeldir"
	"aibox/trainer/program"
)

// TestOverflowIsNotCommitted checks that the job fails and makes no model if the last update makes
// dense parameters infinite, or an update does that to rows that do not occur again. Without
// evaluation data, no later step would show it.
func TestOverflowIsNotCommitted(t *testing.T) {
	log := filepath.Join(t.TempDir(), "train.tsv")
	line := func(label int, d1, user string) string {
		return fmt.Sprintf("%d\t%s\t0\t0\t%s\ti\tt\tr\n", label, d1, user)
	}
	const huge = "1e38" // times a learning rate of 1000 it is no float32
	for name, c := range map[string]struct {
		rates [2]string // of dense parameters and rows
		rows  []string
		want  string
	}{
		"dense, last":      {[2]string{"1000", "1e-6"}, []string{line(1, huge, "a:1")}, "parameter"},
		"rows, last":       {[2]string{"1e-6", "1000"}, []string{line(1, "0", "a:"+huge)}, "row of key"},
		"rows, long since": {[2]string{"1e-6", "1000"}, []string{line(1, "0", "a:"+huge), line(0, "0", "b:1"), line(1, "0", "c:1")}, "row of key"},
	} {
		text := "label\tD1\tD2\tD3\tuser\titem\ttags\tregion\n" + strings.Join(c.rows, "")
		if err := os.WriteFile(log, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		j := job(t, "lr", "data.train=["+log+"]", "data.eval=[]", "data.shuffle_buffer=0", "training.batch_size=1", "data.columns[1].transform=[]",
			"data.columns[2].transform=[]", `data.columns[4]={name: user, separator: "|", weight_separator: ":"}`, "sparse_table.init_stddev=0",
			"optimizer.dense={kind: sgd, learning_rate: "+c.rates[0]+"}", "optimizer.rows={kind: sgd, learning_rate: "+c.rates[1]+"}")
		_, err := Train(t.Context(), j, quiet)
		if !errors.Is(err, program.ErrNotFinite) || !strings.Contains(fmt.Sprint(err), c.want) {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := modeldir.Open(j.Output.ModelDir); !errors.Is(err, modeldir.ErrNoModel) {
			t.Errorf("%s: a model was committed: %v", name, err)
		}
	}
}

// TestOptimizerStateOverflowIsNotCommitted checks that the job fails and makes no model if a gradient
// is so large that its square makes the state of the optimizer infinite, although all values stay
// finite. These values could never change again.
func TestOptimizerStateOverflowIsNotCommitted(t *testing.T) {
	log := filepath.Join(t.TempDir(), "train.tsv")
	text := "label\tD1\tD2\tD3\tuser\titem\ttags\tregion\n1\t1e25\t0\t0\ta\ti\tt\tr\n" // the square of 1e25 is no float32
	if err := os.WriteFile(log, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	j := job(t, "lr", "data.train=["+log+"]", "data.eval=[]", "data.shuffle_buffer=0", "training.batch_size=1", "data.columns[1].transform=[]",
		"data.columns[2].transform=[]", "sparse_table.init_stddev=0", "optimizer.dense={kind: adam, learning_rate: 1e-6}",
		"optimizer.rows={kind: sgd, learning_rate: 1e-6}")
	_, err := Train(t.Context(), j, quiet)
	if errkind.Of(t.Context(), err) != errkind.Diverged || !strings.Contains(fmt.Sprint(err), "the optimizer's state of parameter") || !strings.Contains(fmt.Sprint(err), "training.warm_start") {
		t.Error(err)
	}
	if _, err := modeldir.Open(j.Output.ModelDir); !errors.Is(err, modeldir.ErrNoModel) {
		t.Errorf("a model was committed: %v", err)
	}
}
