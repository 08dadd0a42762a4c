package schema

import (
	"bufio"
	"bytes"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"aibox/configs/internal/yamltree"
)

type engine struct {
	Kind  string `yaml:"kind"`
	Power int    `yaml:"power"`
	Tank  Bytes  `yaml:"tank"`
}

type wheel struct {
	Name string  `yaml:"name"`
	Size float64 `yaml:"size"`
}

type car struct {
	Engine engine  `yaml:"engine"`
	Wheels []wheel `yaml:"wheels"`
}

var cars = NewTable(reflect.TypeFor[car](), []Key{
	{Path: "engine", Meaning: "What drives it."},
	{Path: "engine.kind", Required: true, Values: []string{"petrol", "electric"}, Meaning: "Kind of engine."},
	{Path: "engine.power", Default: "50", Range: "[1,1000]", Meaning: "Kilowatts."},
	{Path: "engine.tank", Default: "1k", When: []When{{Path: "engine.kind", In: []string{"petrol"}}}, Meaning: "Content of the tank."},
	{Path: "wheels", Default: "[{name: front}, {name: rear}]", Meaning: "The wheels."},
	{Path: "wheels[].name", Required: true, Meaning: "Name of the wheel."},
	{Path: "wheels[].size", DefaultFrom: func(s Scope) string { return fmt.Sprint(s.Root.(*car).Engine.Power/10 + s.Index()) },
		DefaultNote: "power / 10", Meaning: "Its size."},
})

func decode(t *testing.T, text string, sets ...string) (*car, *Decoder) {
	t.Helper()
	root, faults := yamltree.Parse(text, yamltree.Place{})
	root, more := yamltree.Set(root, sets)
	if len(faults)+len(more) > 0 {
		t.Fatal(faults, more)
	}
	c := &car{}
	d := cars.NewDecoder(c)
	d.Decode(root)
	d.Complete()
	return c, d
}

func TestDefaultsFollowWhatIsGiven(t *testing.T) {
	c, d := decode(t, "engine: {kind: petrol, power: 1e2}\n")
	if want := (car{engine{"petrol", 100, 1 << 10}, []wheel{{"front", 10}, {"rear", 11}}}); d.Faults != nil || !reflect.DeepEqual(*c, want) {
		t.Errorf("%+v, %v, want %+v", *c, d.Faults, want)
	}
	// An override puts a key of the file out of effect.
	c, d = decode(t, "engine: {kind: petrol, tank: 3}\n", "engine.kind=electric")
	if c.Engine.Tank != 0 || d.Faults != nil || len(d.Notes) != 1 || !strings.HasPrefix(d.Notes[0], "engine.tank of the job file is ignored") {
		t.Errorf("%+v, %v, %q", *c, d.Faults, d.Notes)
	}
}

func TestFaults(t *testing.T) {
	for text, want := range map[string]string{
		"engine: {power: 1}\n":                              "1:1 engine.kind is missing; expected text: one of petrol, electric",
		"engine:\n  kind: petrl\n":                          `2:9 engine.kind "petrl" is not allowed: did you mean "petrol"? (allowed: petrol, electric)`,
		"engine: {kind: petrol, power: 0}\n":                "1:31 engine.power 0 is out of range; allowed: from 1 to 1000",
		"engine: {kind: petrol, size: 3}\n":                 "1:24 engine.size unknown key `size` here: did you mean `wheels[].size`?",
		"engine: {kind: electric, tank: 3}\n":               "1:26 engine.tank has no effect with engine.kind: electric, only with petrol; remove it",
		"engine: {kind: petrol}\nwheels: [{name: a}, {}]\n": "2:21 wheels[1].name is missing; expected text",
		"engine: {kind: petrol}\nengine: {kind: petrol}\n":  "2:1 engine is given twice, first in line 1; remove one",
		"engine: {kind: petrol, power: \"3\"}\n":            `1:31 engine.power expected an integer (from 1 to 1000), found "3" as text; remove the quotation marks`,
	} {
		_, d := decode(t, text)
		var have []string
		for _, f := range d.Faults {
			have = append(have, fmt.Sprintf("%d:%d %s %s", f.Line, f.Column, f.Path, f.Message))
			if d.Sound(strings.Split(f.Path, ".")[0]) {
				t.Errorf("%q: what is around %s counts as sound", text, f.Path)
			}
		}
		if strings.Join(have, "\n") != want {
			t.Errorf("%q:\n%s, want\n%s", text, strings.Join(have, "\n"), want)
		}
	}
}

// TestShowIsReadBack: what is printed is the same struct, and says what was not given.
func TestShowIsReadBack(t *testing.T) {
	c, d := decode(t, "engine: {kind: petrol}\nwheels: [{name: only}]\n")
	var b bytes.Buffer
	w := bufio.NewWriter(&b)
	cars.Show(w, c, func(path string) bool { _, given := d.Given[path]; return given })
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	const want = `
engine:  # What drives it.
  kind: petrol
  power: 50  # default: Kilowatts.
  tank: 1KiB  # default: Content of the tank.
wheels:
  # size: Its size.
  - {name: only, size: 5}  # default: size
`
	if b.String() != want {
		t.Errorf("%s, want%s", &b, want)
	}
	if again, d := decode(t, b.String()); d.Faults != nil || !reflect.DeepEqual(again, c) || !reflect.DeepEqual(cars.Values(again), cars.Values(c)) {
		t.Errorf("%+v, %v, want %+v", again, d.Faults, c)
	}
}
