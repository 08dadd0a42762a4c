package trainer

import (
	"os"
	"strings"
	"testing"

	"aibox/internal/errkind"
)

// TestStoppingNeedsBothLabels checks that data.eval with only one label is a fault of the data, not
// of the job.
func TestStoppingNeedsBothLabels(t *testing.T) {
	eval := t.TempDir() + "/eval.csv"
	j := biasJob(t, "lr", rowsOf(9, 9, 1, 1), "training.early_stopping.metric=auc", "training.epochs=2", "data.eval=["+eval+"]")
	if err := os.WriteFile(eval, []byte("label,weight,x,user,item\n0,1,0,u1,i1\n0,1,0,u2,i1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := Train(t.Context(), j, quiet)
	if err == nil || errkind.Of(t.Context(), err) != errkind.Data || !strings.Contains(err.Error(), "data.eval: auc, by which training.early_stopping compares epochs, is undefined: all of its 2 examples have label 0") {
		t.Errorf("%v", err)
	}
}
