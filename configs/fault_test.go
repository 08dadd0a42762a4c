package configs

import (
	"errors"
	"testing"

	"aibox/internal/errkind"
)

// TestKindOfFaults: faults that are all on the command line are bad usage.
func TestKindOfFaults(t *testing.T) {
	for _, c := range []struct {
		job  string
		opts LoadOptions
		want errkind.Kind
	}{
		{suggestJob, LoadOptions{Date: "tomorrow"}, errkind.Usage},
		{suggestJob, LoadOptions{Set: []string{"model.kind=nope"}}, errkind.Usage},
		{suggestJob + "extra: 1\n", LoadOptions{Date: "tomorrow"}, errkind.Job},
		{"", LoadOptions{Set: []string{"model.kind=nope"}}, errkind.Job},
	} {
		_, err := Parse("job.yaml", []byte(c.job), c.opts)
		var faults FaultsError
		if !errors.As(err, &faults) || faults.ErrorKind() != c.want {
			t.Errorf("%+v: kind %v, want %v: %v", c.opts, faults.ErrorKind(), c.want, err)
		}
	}
}
