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

// later says that output.remote has the model of a later night than c, from which a job starts that
// has a date in its model directory; "": it has not, or is not asked, since there is no night
// between. A machine that was lost while it trained an earlier night again leaves the later ones
// there alone: the machine that goes on with that night has no other model.
func (m *Model) later(ctx context.Context, c *chain.Choice) string {
	uri := m.Job.Output.Remote
	if uri == "" || !m.Job.ModelDirHasDate() || !m.missesNights(c) {
		return ""
	}
	d, err := transfer.OpenPresent(m.Sources, uri, 0, "", m.Log)
	if err != nil {
		return "" // what is to be published says so
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
	return fmt.Sprintf("this run starts from the model of %s, and output.remote has that of a later night, %s, which this machine does not have: what was trained since is not in the new model; unless that is meant, as where that model was bad, `aibox restore --from %s --to DIR`, where DIR is output.model_dir at that date, and train this night again",
		c.Night, x.OfNight(), humanize.ShellWord(from))
}

// missesNights reports whether there may be nights between that of c and that of the job.
func (m *Model) missesNights(c *chain.Choice) bool {
	return c.Night != "" && modeldir.LaterNight(m.Job.NightBefore(), c.Night)
}
