package configs

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"aibox/configs/internal/schema"
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
var transformKinds = schema.Fields(reflect.TypeFor[transformKeys]())

var transformUsage = map[string]string{
	"clip":      "{clip: {min: 0, max: 100}}",
	"bucketize": "{bucketize: {boundaries: [1, 10, 100]}}",
}

// A Transform is a schema.Custom.

// Written is the mapping that a transform is written as.
func (Transform) Written() reflect.Type { return reflect.TypeFor[transformKeys]() }

// Plural is what several are called.
func (Transform) Plural() string { return "transforms" }

// Bare are the transforms that need no options.
func (Transform) Bare() []string { return []string{"log1p", "standardize"} }

// Decode decodes one step on a dense column.
func (Transform) Decode(d *schema.Decoder, path, pattern string, n *yamltree.Node) reflect.Value {
	var t Transform
	switch n.Kind {
	case yamltree.Scalar:
		t.Kind = n.Text
		if !slices.Contains(transformKinds, n.Text) {
			d.Fault(n.Place, path, "%s is not a transform%s", nearest.Quote(n.Text), nearest.Suggest(n.Text, transformKinds))
		} else if !slices.Contains(t.Bare(), n.Text) {
			d.Fault(n.Place, path, "%s needs its options: %s", n.Text, transformUsage[n.Text])
		}
	case yamltree.Mapping:
		t.decodeMapping(d, path, pattern, n)
	default:
		d.WrongType(path, "a transform such as log1p or {clip: {min: 0}}", n)
	}
	return reflect.ValueOf(t)
}

func (t *Transform) decodeMapping(d *schema.Decoder, path, pattern string, n *yamltree.Node) {
	for i, e := range n.Entries {
		if e.Value.IsNull() { // log1p: and standardize: need no options
			n.Entries[i].Value = &yamltree.Node{Place: e.Value.Place, Kind: yamltree.Mapping}
		}
	}
	var keys transformKeys
	d.Mapping(path, pattern, n, reflect.ValueOf(&keys).Elem())
	if len(n.Entries) != 1 {
		d.Fault(n.Place, path, "an item of the list is one transform; write [{clip: {min: 0}}, log1p]")
		return
	}
	t.Kind = n.Entries[0].Key
	var message string
	switch {
	case keys.Standardize != nil:
		t.Mean, t.Std = keys.Standardize.Mean, keys.Standardize.Std
		if (t.Mean == nil) != (t.Std == nil) {
			message = "give both mean and std, or neither: then a first scan computes them"
		}
	case keys.Clip != nil:
		t.Min, t.Max = keys.Clip.Min, keys.Clip.Max
		switch {
		case t.Min == nil && t.Max == nil:
			message = "clip needs min, max or both: " + transformUsage["clip"]
		case t.Min != nil && t.Max != nil && *t.Min >= *t.Max:
			message = fmt.Sprintf("min %s is not below max %s", yamltree.FormatFloat(*t.Min), yamltree.FormatFloat(*t.Max))
		}
	case keys.Bucketize != nil:
		t.Boundaries = keys.Bucketize.Boundaries
		if len(t.Boundaries) == 0 {
			message = "bucketize needs boundaries: " + transformUsage["bucketize"]
		}
		for i := 1; i < len(t.Boundaries); i++ {
			if a, b := t.Boundaries[i-1], t.Boundaries[i]; a >= b && d.Sound(path) {
				d.FaultAt(fmt.Sprintf("%s.bucketize.boundaries[%d]", path, i), "%s follows %s: boundaries must ascend", yamltree.FormatFloat(b), yamltree.FormatFloat(a))
			}
		}
	}
	if message != "" && d.Sound(path) {
		d.Fault(n.Place, path, "%s", message)
	}
}

// YAML writes t in flow style, as it is read.
func (t Transform) YAML() string {
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
