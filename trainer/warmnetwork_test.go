package trainer

import (
	"log/slog"
	"strings"
	"testing"
)

// TestWarmStartWithAnotherNetwork: it is logged where the layers, whose weights are taken over, get
// other inputs or are normalized.
func TestWarmStartWithAnotherNetwork(t *testing.T) {
	dir, _ := firstNight(t, "dcn", "model.hidden_layers=[8]")
	for set, key := range map[string]string{"model.structure=parallel": "", "model.structure=stacked": "key=model.structure", "model.batch_norm=true": "key=model.batch_norm"} {
		var log strings.Builder
		j := job(t, "dcn", "model.hidden_layers=[8]", set, "data.limit=64", "training.accept_diverged=true", "training.warm_start="+dir)
		if _, err := Train(t.Context(), j, Options{Logger: slog.New(slog.NewTextHandler(&log, nil))}); err != nil {
			t.Fatal(err)
		}
		if warns := strings.Contains(log.String(), "the setting should stay what it was"); warns != (key != "") || !strings.Contains(log.String(), key) {
			t.Errorf("%s: %s", set, log.String())
		}
	}
}
