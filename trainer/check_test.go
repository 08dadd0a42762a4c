package trainer

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"aibox/configs"
	"aibox/gpu/emulated"
	"aibox/internal/errkind"
	"aibox/reader/source"
	"aibox/trainer/internal/testjobs"
	"aibox/trainer/modeldir"
	"aibox/trainer/report"
)

// TestCheckFindsWhatTrainingRefuses checks that Check refuses everything that Train refuses without
// having read the data, in the same words.
func TestCheckFindsWhatTrainingRefuses(t *testing.T) {
	for _, c := range []struct{ kind, set, want string }{
		{"fm", "optimizer.rows={kind: ftrl, ftrl_beta: 0, ftrl_l2: 0, initial_accumulator: 0}", "optimizer.rows"},
		{"fm", "optimizer.dense={kind: adam, epsilon: 1e-60}", "optimizer.dense"},
		{"fm", "optimizer.rows={kind: adagrad, epsilon: 1e-60}", "optimizer.rows"},
		{"fm", "optimizer.rows={kind: adagrad, learning_rate: 0.1, weight_decay: 10}", "optimizer.rows"},
		{"fm", "optimizer.linear={kind: sgd, learning_rate: 0.1, weight_decay: 10}", "optimizer.linear"},
		{"fm", "sparse_table={kind: ssd, memory_bytes: 1MiB}", "an empty table needs a budget of"},
		{"dlrm", "model={bottom_layers: [65536], embedding_dim: 65536}", "sparse_table"},
	} {
		log, err := testjobs.Log()
		if err != nil {
			t.Fatal(err)
		}
		j, err := testjobs.Parse(c.kind, []string{"data.train=[" + log + "/train-0.tsv]", "output.model_dir=" + t.TempDir(), c.set})
		if err != nil {
			t.Logf("%s is found by package configs: %v", c.set, err)
			continue
		}
		checked := Check(t.Context(), j)
		if errkind.Of(t.Context(), checked) != errkind.Job || !strings.Contains(checked.Error(), c.want) {
			t.Errorf("%s: %v", c.set, checked)
		}
		if _, err := Train(t.Context(), j, quiet); err == nil || checked == nil || err.Error() != checked.Error() {
			t.Errorf("%s: training says %v", c.set, err)
		}
	}
	for _, kind := range configs.ModelKinds {
		for _, format := range []string{"criteo", "csv", "tsv", "libsvm", "libffm", "parquet"} {
			var text bytes.Buffer
			if err := configs.Init(&text, kind, format); err != nil {
				t.Fatal(err)
			}
			j, err := configs.Parse("init.yaml", text.Bytes(), configs.LoadOptions{})
			if err == nil {
				err = Check(t.Context(), j)
			}
			if err != nil {
				t.Errorf("config init --model %s --format %s: %v", kind, format, err)
			}
		}
	}
	shipped, err := filepath.Glob("../configs/*.yaml")
	if err != nil || len(shipped) == 0 {
		t.Fatal(err)
	}
	for _, path := range shipped {
		job, err := configs.Load(path, configs.LoadOptions{})
		if err == nil {
			err = Check(t.Context(), job)
		}
		if err != nil {
			t.Errorf("%s: %v", path, err)
		}
	}
}

// TestWarmStartFromItsOwnDirectory checks that a job cannot start from the model that it is about
// to replace, by whatever path.
func TestWarmStartFromItsOwnDirectory(t *testing.T) {
	j := job(t, "lr")
	train(t, j)
	dir := j.Output.ModelDir
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(dir, link); err != nil {
		t.Fatal(err)
	}
	t.Chdir(filepath.Dir(dir))
	for _, path := range []string{link, "./" + filepath.Base(dir), filepath.Base(dir), dir + "/../" + filepath.Base(dir)} {
		j.Training.WarmStart = path
		if err := Check(t.Context(), j); err == nil || !strings.Contains(err.Error(), "training.warm_start") {
			t.Errorf("%s: %v", path, err)
		}
		if _, err := Train(t.Context(), j, quiet); err == nil || !strings.Contains(err.Error(), "same directory") {
			t.Errorf("%s: training says %v", path, err)
		}
	}
}

// TestCheckFindsOverwrites checks that outputs that training would refuse because they are inputs
// or equal to each other are found without training, and are reported as faults of the job file.
func TestCheckFindsOverwrites(t *testing.T) {
	for _, set := range []string{"output.metrics=model/MODEL.json", "output.metrics=model/summary.json", "output.metrics=part-1.tsv", "output.model_dir=logs"} {
		t.Chdir(t.TempDir())
		for _, file := range []string{"part-1.tsv", "logs/MODEL.json"} {
			if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(file, nil, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		j, err := testjobs.Parse("lr", []string{"data.train=[part-*.tsv, logs]", "data.eval=[]", "output.model_dir=model", set})
		if err != nil {
			t.Fatal(err)
		}
		err = Check(t.Context(), j)
		var overwrite *source.OverwriteError
		if !errors.As(err, &overwrite) || errkind.Of(t.Context(), err) != errkind.Job {
			t.Errorf("%s: %v", set, err)
		}
	}
}

// TestReportsOfOtherModelsStay checks that a job cannot write its metrics or events into the
// directory of another model, where they would count as that model's reports. In its own directory,
// by whatever path, they are reports of the new model, and those of the earlier model are
// unchanged.
func TestReportsOfOtherModelsStay(t *testing.T) {
	j := job(t, "lr", "output.keep_generations=2")
	dir := j.Output.ModelDir
	train(t, j)
	before := reportOfModel(t, j, report.MetricsName)

	for _, set := range []string{"output.metrics=" + dir + "/metrics.jsonl", "output.tensorboard=" + dir + "/tensorboard"} {
		other := job(t, "lr", set)
		checked := Check(t.Context(), other)
		if errkind.Of(t.Context(), checked) != errkind.Job || !strings.Contains(checked.Error(), "another model") {
			t.Errorf("%s: %v", set, checked)
		}
		if _, err := Train(t.Context(), other, quiet); err == nil || err.Error() != checked.Error() {
			t.Errorf("%s: training says %v", set, err)
		}
	}

	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(dir, link); err != nil {
		t.Fatal(err)
	}
	j.Output.Metrics, j.Output.TensorBoard = filepath.Join(link, report.MetricsName), filepath.Join(link, report.TensorBoardName)
	j.Seed++
	train(t, j)
	after := reportOfModel(t, j, report.MetricsName)
	if after == before || strings.HasPrefix(after, before) {
		t.Errorf("the second model has the metrics %s after %s", after, before)
	}
	if data, err := os.ReadFile(modeldir.ReportOf(dir, "gen-000001", report.MetricsName)); string(data) != before {
		t.Errorf("the first model has the metrics %s, %v", data, err)
	}
	if data, err := os.ReadFile(filepath.Join(dir, report.MetricsName)); string(data) != after {
		t.Errorf("the directory has the metrics %s, %v", data, err)
	}
}

// TestBatchThatDevicesCannotCompute checks that a mini-batch of which an array has more elements
// than kernels can number is a fault of the job file, and that the error says how many examples are
// possible.
func TestBatchThatDevicesCannotCompute(t *testing.T) {
	for _, c := range []struct {
		batch   int
		devices string
		refused bool
	}{{1 << 20, "[0]", true}, {1<<20 - 1, "[0]", false}, {1 << 20, "[0, 0]", false}} {
		j := testjobs.Job(t, "wide_deep", "engine={kind: cuda, devices: "+c.devices+"}", "model.hidden_layers=[2048, 8]", fmt.Sprint("training.batch_size=", c.batch))
		opts := quiet
		opts.platform = emulated.New(emulated.Options{Devices: emulated.Devices(1, 64<<20)})
		const want = "make training.batch_size smaller (1048575 fits)"
		err := Check(t.Context(), j)
		if refused := errkind.Of(t.Context(), err) == errkind.Job && strings.Contains(err.Error(), want); refused != c.refused || err != nil && !refused {
			t.Errorf("%+v: %v", c, err)
		}
		if !c.refused {
			continue
		}
		if _, err := Train(t.Context(), j, opts); errkind.Of(t.Context(), err) != errkind.Job || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: training says %v", c, err)
		}
	}
}

// TestNetworkThatDevicesCannotCompute checks the same for a network with more parameters than
// kernels can number, which the host's processors can train.
func TestNetworkThatDevicesCannotCompute(t *testing.T) {
	for _, c := range []struct {
		engine, layers string
		refused        bool
	}{{"cuda", "65536, 32768", true}, {"cuda", "65536, 32000", false}, {"cpu", "65536, 32768", false}} {
		j := testjobs.Job(t, "wide_deep", "engine.kind="+c.engine, "model.hidden_layers=["+c.layers+"]")
		err := Check(t.Context(), j)
		if refused := errkind.Of(t.Context(), err) == errkind.Job && strings.Contains(err.Error(), "the network has more parameters"); refused != c.refused || err != nil && !refused {
			t.Errorf("%+v: %v", c, err)
		}
	}
}
