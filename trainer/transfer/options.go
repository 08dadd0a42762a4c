package transfer

import "log/slog"

// Options are the options of all calls.
type Options struct {
	Logger  *slog.Logger // nil: slog.Default()
	Version string       // of the binary, recorded with what is published
}

func (o *Options) ensureDefaults() {
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
}
