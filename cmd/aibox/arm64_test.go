package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// TestARM checks that the program for 64-bit ARM makes the same model as this one, and predicts the
// same with it. On ARM, Go fuses products and sums and has its own mathematical functions, so that
// code that does not take care of that gives other bits.
func TestARM(t *testing.T) {
	emulator, err := exec.LookPath("qemu-aarch64-static")
	if err != nil || testing.Short() {
		t.Skip("needs qemu-aarch64-static (Debian: qemu-user-static), and builds the program")
	}
	arm := filepath.Join(t.TempDir(), "aibox-arm64")
	build := exec.Command("go", "build", "-trimpath", "-o", arm, ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH=arm64")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("building the program: %v\n%s", err, out)
	}
	emulated := &binary{t, emulator}
	inMemoryJob(t)
	for name, set := range map[string][]string{
		"on SSD":     {"model.kind=deepfm", "model.dropout=0.1"},
		"bfloat16":   {"model.kind=dcn_v2", "engine.precision=bf16", "sparse_table.value_format=bfloat16", "optimizer.rows.kind=adam"},
		"in memory":  {"model.kind=wide_deep", "sparse_table={kind: memory}", "optimizer.rows.kind=ftrl"},
		"dot":        {"model.kind=dlrm", "sparse_table.value_format=float16", "optimizer.dense.kind=adagrad"},
		"all in all": {"model.kind=dcn", "model.hidden_layers=[32]", "training.epochs=2", "data.validation_fraction=0.2", "data.negative_sampling=0.5"},
	} {
		t.Run(name, func(t *testing.T) {
			args := []string{"train", "job.yaml", "--set", "training.max_examples=2000", "--set", "training.batch_size=256", "--set", "training.accept_diverged=true"}
			for _, s := range set {
				args = append(args, "--set", s)
			}
			here, there := filepath.Join(t.TempDir(), "model"), filepath.Join(t.TempDir(), "model")
			ok(t, append(args, "--set", "output.model_dir="+here)...)
			if o := emulated.run(append([]string{arm}, append(args, "--set", "output.model_dir="+there)...)...); o.code != 0 {
				t.Fatalf("on ARM it exits with %d:\n%s", o.code, o.stderr)
			}
			if a, b := ok(t, "inspect", "--digest", here), ok(t, "inspect", "--digest", there); a != b {
				t.Errorf("the digest is %s, and %s on ARM", a, b)
			}
			predict := []string{"predict", "--data", "eval.tsv", "--model-dir", here, "--output"}
			ok(t, append(predict, here+".tsv")...)
			if o := emulated.run(append([]string{arm}, append(predict, there+".tsv")...)...); o.code != 0 || read(t, here+".tsv") != read(t, there+".tsv") {
				t.Errorf("predictions differ on ARM; it exits with %d:\n%s", o.code, o.stderr)
			}
		})
	}
}
