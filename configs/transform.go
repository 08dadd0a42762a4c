package configs

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"aibox/configs/internal/yamltree"
	"aibox/internal/nearest"
)

// transformKeys is how a transform is written: a mapping with exactly one of
// these keys, or the bare name of one that needs no options.
type transformKeys struct {
	Log1p       *struct{}        `yaml:"log1p"`
	Standardize *standardizeKeys `yaml:"standardize"`
	Clip        *clipKeys        `yaml:"clip"`
	Bucketize   *bucketizeKeys   `yaml:"bucketize"`
}

type standardizeKeys struct {
	Mean *float64 `yaml:"mean"`
	Std  *float64 `yaml:"std"`
}

type clipKeys struct {
	Min *float64 `yaml:"min"`
	Max *float64 `yaml:"max"`
}

type bucketizeKeys struct {
	Boundaries []float64 `yaml:"boundaries"`
}

// transformKinds are the transforms, in the order of transformKeys.
var transformKinds = fieldNames(reflect.TypeOf(transformKeys{}))

// transform decodes one step on a dense column.
func (l *loader) transform(path, pattern string, n *yamltree.Node, out *Transform) {
	if n.Kind == yamltree.Scalar {
		out.Kind = n.Text
		switch {
		case !slices.Contains(transformKinds, n.Text):
			l.fault(n.Place, path, "%s is not a transform%s", nearest.Quote(n.Text), nearest.Suggest(n.Text, transformKinds))
		case n.Text == "clip" || n.Text == "bucketize":
			l.fault(n.Place, path, "%s needs its options: %s", n.Text, transformUsage[n.Text])
		}
		return
	}
	if n.Kind != yamltree.Mapping {
		l.wrongType(path, "a transform such as log1p or {clip: {min: 0}}", n)
		return
	}
	var keys transformKeys
	l.mapping(path, pattern, n, reflect.ValueOf(&keys).Elem())
	if len(n.Entries) != 1 {
		l.fault(n.Place, path, "an item of the list is one transform; write [{clip: {min: 0}}, log1p]")
		return
	}
	out.Kind = n.Entries[0].Key
	switch {
	case keys.Standardize != nil:
		out.Mean, out.Std = keys.Standardize.Mean, keys.Standardize.Std
		if (out.Mean == nil) != (out.Std == nil) && !l.badBelow(path) {
			l.fault(n.Place, path, "give both mean and std, or neither: then a first scan computes them")
		}
	case keys.Clip != nil:
		out.Min, out.Max = keys.Clip.Min, keys.Clip.Max
		switch {
		case l.badBelow(path):
		case out.Min == nil && out.Max == nil:
			l.fault(n.Place, path, "clip needs min, max or both: %s", transformUsage["clip"])
		case out.Min != nil && out.Max != nil && *out.Min >= *out.Max:
			l.fault(n.Place, path, "min %s is not below max %s", yamltree.FormatFloat(*out.Min), yamltree.FormatFloat(*out.Max))
		}
	case keys.Bucketize != nil:
		out.Boundaries = keys.Bucketize.Boundaries
		switch {
		case l.badBelow(path):
		case len(out.Boundaries) == 0:
			l.fault(n.Place, path, "bucketize needs boundaries: %s", transformUsage["bucketize"])
		}
		for i := 1; i < len(out.Boundaries); i++ {
			if a, b := out.Boundaries[i-1], out.Boundaries[i]; a >= b && !l.badBelow(path) {
				l.faultAt(fmt.Sprintf("%s.bucketize.boundaries[%d]", path, i), "%s follows %s: boundaries must ascend", yamltree.FormatFloat(b), yamltree.FormatFloat(a))
			}
		}
	}
}

var transformUsage = map[string]string{
	"clip":      "{clip: {min: 0, max: 100}}",
	"bucketize": "{bucketize: {boundaries: [1, 10, 100]}}",
}

// badBelow reports whether path, or anything below it, has a fault.
func (l *loader) badBelow(path string) bool {
	for p := range l.bad {
		if strings.HasPrefix(p, path+".") || strings.HasPrefix(p, path+"[") || p == path {
			return true
		}
	}
	return false
}

// yaml writes t in flow style, as it is read.
func (t Transform) yaml() string {
	var options []string
	add := func(name string, x *float64) {
		if x != nil {
			options = append(options, name+": "+yamltree.FormatFloat(*x))
		}
	}
	add("mean", t.Mean)
	add("std", t.Std)
	add("min", t.Min)
	add("max", t.Max)
	if t.Boundaries != nil {
		parts := make([]string, len(t.Boundaries))
		for i, b := range t.Boundaries {
			parts[i] = yamltree.FormatFloat(b)
		}
		options = append(options, "boundaries: ["+strings.Join(parts, ", ")+"]")
	}
	if options == nil {
		return t.Kind
	}
	return "{" + t.Kind + ": {" + strings.Join(options, ", ") + "}}"
}
