package trainer

import (
	"bufio"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"testing"

	"aibox/configs"
	"aibox/internal/testseed"
	"aibox/trainer/internal/testjobs"
)

// stepLosses returns the losses of the training steps of a job that has ended and has logged every
// step.
func stepLosses(t *testing.T, j *configs.Job) (losses []float64) {
	t.Helper()
	f, err := os.Open(filepath.Join(j.Output.ModelDir, "metrics.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var line struct {
			Kind    string  `json:"kind"`
			LogLoss float64 `json:"log_loss"`
		}
		if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
			t.Fatal(err)
		}
		if line.Kind == "train" {
			losses = append(losses, line.LogLoss)
		}
	}
	return losses
}

// TestDevicesLosses checks that in the first 1,000 steps the losses of devices are within 1e-4 of
// those of the CPU, relatively. All functions of these models are smooth. If rounding changed the
// sign of the input of a ReLU, or of a gradient that is almost zero, which Adagrad divides by
// itself if its sums begin at zero, both models would be right, and differ from then on.
func TestDevicesLosses(t *testing.T) {
	seed := testseed.Of(t)
	steps := 1000
	if testing.Short() {
		steps = 50
	}
	for i, kind := range testjobs.Kinds() {
		t.Run(kind, func(t *testing.T) {
			const batch = 8
			set := []string{
				fmt.Sprintf("training={batch_size: %d, epochs: 99, max_examples: %d, accept_diverged: true}", batch, steps*batch), "output.log_every=1", "data.eval=[]",
				"optimizer.rows={kind: adagrad, initial_accumulator: 0.1}",
			}
			if kind != "lr" && kind != "fm" {
				set = append(set, "model.activation=tanh")
			}
			host := job(t, kind, set...)
			train(t, host)
			want := stepLosses(t, host)
			place := []string{"engine.kind=cuda", "engine.devices=[0]"}
			if i%2 == 1 {
				place = []string{"engine.kind=cuda", "engine.embeddings=device", "engine.devices=[0, 1, 2]"}
			}
			on := job(t, kind, append(set, place...)...)
			if _, err := trainOn(t, on, devices(seed, 3), nil); err != nil {
				t.Fatal(err)
			}
			got := stepLosses(t, on)
			if len(got) != steps || len(want) != steps {
				t.Fatalf("there are losses of %d steps, and of %d on the CPU", len(got), len(want))
			}
			for i, loss := range got {
				if !(math.Abs(loss-want[i]) <= 1e-4*want[i]) {
					t.Fatalf("the loss of step %d is %v, on the CPU %v", i+1, loss, want[i])
				}
			}
		})
	}
}
