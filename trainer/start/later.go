package start

import (
	"context"
	"encoding/json"
	"fmt"

	"aibox/internal/humanize"
	"aibox/trainer/chain"
	"aibox/trainer/modeldir"
	"aibox/trainer/transfer"
)

// later returns a warning if output.remote has the model of a later night than c, for a job that
// has a date in its model directory; "" if it has none, or is not asked because there is no night
// between. If a machine is lost while it trains an earlier night again, the later models are only
// in output.remote, and the machine that continues with that night does not have them.
func (m *Model) later(ctx context.Context, c *chain.Choice) string {
	uri := m.Job.Output.Remote
	if uri == "" || !m.Job.ModelDirHasDate() || !m.missesNights(c) {
		return ""
	}
	d, err := transfer.OpenPresent(m.Sources, uri, 0, "", m.Log)
	if err != nil {
		return "" // publishing reports the error
	}
	all, _, err := d.Generations(ctx)
	if err != nil {
		m.Log.Info("it is not known whether output.remote has the model of a later night", "remote", uri, "error", err)
		return ""
	}
	best := transfer.Newest(all, m.Job.PlainName(), m.Chain.MayStartFrom)
	var x modeldir.Manifest
	if best == nil || json.Unmarshal(best.Model, &x) != nil || !modeldir.LaterNight(x.OfNight(), c.Night) {
		return ""
	}
	from := fmt.Sprintf("%s@%d", d.URI(), best.Number)
	return fmt.Sprintf("this run starts from the model of %s, but output.remote has that of a later night, %s, which this machine does not have: what was trained since is not in the new model; unless that is intended, for example because that model was bad, run `aibox restore --from %s --to DIR`, where DIR is output.model_dir at that date, and train this night again",
		c.Night, x.OfNight(), humanize.ShellWord(from))
}

// missesNights reports whether there may be nights between those of c and of the job.
func (m *Model) missesNights(c *chain.Choice) bool {
	return c.Night != "" && modeldir.LaterNight(m.Job.NightBefore(), c.Night)
}
