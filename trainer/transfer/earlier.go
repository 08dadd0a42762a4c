package transfer

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"slices"

	"aibox/configs"
	"aibox/internal/humanize"
	"aibox/trainer/modeldir"
	"aibox/trainer/remote"
)

// If a night's model could not be published because the remote directory could not be reached, it
// is published before the next model of its directory. Such models are published in the order in
// which they were made, so that the newest model has the highest number there. This applies to the
// models from which the next one was made, but not to one that the model directory has gone back
// from. Nor does it apply to one that is older than a later night's model there: then a night is
// being trained again, and later models there would have to make room for it.

// isModel reports whether m is the published model of its directory.
func isModel(m *modeldir.Model) bool {
	all, err := modeldir.Generations(m.Dir)
	if err != nil {
		return false
	}
	made := modeldir.Lineage(all)
	return len(made) > 0 && made[0].Name == m.Generation
}

// keptModel is a model that is still on this machine.
type keptModel struct {
	name string // for modeldir.Open
	*modeldir.Manifest
}

// madeFrom yields the models of the same job from which m was made, each from the next, as far as
// they are on this machine.
func (o *publishing) madeFrom(m *modeldir.Model) iter.Seq[keptModel] {
	return func(yield func(keptModel) bool) {
		for at, from := range modeldir.MadeFrom(m.Dir, &m.Manifest) {
			if o.jobName(&from.Manifest) != o.jobName(&m.Manifest) || !yield(keptModel{modeldir.JoinName(at, from.Number), &from.Manifest}) {
				return
			}
		}
	}
}

// unpublished returns the models from which m was made that the remote directory does not have, the
// oldest first. It considers only as many as are kept there besides m, and none for which a model
// of a later night there would have to be removed.
func unpublished(ctx context.Context, d *remote.Directory, m *modeldir.Model, o *publishing) (out []keptModel, err error) {
	there, _, err := d.Generations(ctx)
	if err != nil {
		return nil, err
	}
	has := func(x *modeldir.Manifest) bool {
		return slices.ContainsFunc(there, func(r *remote.Manifest) bool { return r.Job == o.jobName(x) && r.Identity == x.Identity() })
	}
	for k := range o.madeFrom(m) {
		if len(out) >= o.job.Output.RemoteKeepGenerations-1 || has(k.Manifest) {
			break
		}
		out = append(out, k)
	}
	if len(out) > 0 && has(&m.Manifest) {
		for _, k := range out {
			o.Logger.Info("an earlier model is missing from the remote directory, and is not published, because one that was made from it is there", "model", k.name, "remote", d.URI())
		}
		return nil, nil
	}
	out = slices.DeleteFunc(out, func(k keptModel) bool {
		return slices.ContainsFunc(there, func(r *remote.Manifest) bool {
			return r.Job == o.jobName(k.Manifest) && modeldir.LaterNight(nightOf(r), k.OfNight())
		})
	})
	slices.Reverse(out)
	return out, nil
}

// publishEarlier publishes the models that unpublished returns. It is no error if one of them
// cannot be published, unless ctx has ended: the later models do not need it.
func publishEarlier(ctx context.Context, d *remote.Directory, m *modeldir.Model, o *publishing) (out []*remote.Published, err error) {
	missing, err := unpublished(ctx, d, m, o)
	if err != nil {
		return nil, err
	}
	for _, k := range missing {
		o.Logger.Info("publishing the model of an earlier run, which the remote directory lacks", "model", k.name, "remote", d.URI())
		p, err := publishGeneration(ctx, d, k.name, o)
		if err == nil {
			out = append(out, p)
			continue
		}
		if ctx.Err() != nil {
			return nil, err
		}
		o.Logger.Warn("the model of an earlier run could not be published; those made from it do not need it", "model", k.name, "command", "aibox publish "+humanize.ShellWord(k.name), "error", err)
	}
	return out, nil
}

func publishGeneration(ctx context.Context, d *remote.Directory, name string, o *publishing) (*remote.Published, error) {
	m, err := modeldir.Open(name)
	if err != nil {
		return nil, err
	}
	p, err := publishOne(ctx, d, m, false, o)
	return p, errors.Join(err, m.Close())
}

// publishing are the options for publishing models.
type publishing struct {
	job    *configs.Job // of the model that the caller named
	verify bool         // read what is there of the models, and repair it
	Options
}

// jobName returns the name of a model's job.
func (o *publishing) jobName(m *modeldir.Manifest) string { return cmp.Or(m.Job, o.job.Name) }
