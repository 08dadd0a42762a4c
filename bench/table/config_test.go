package main

import (
	"io"
	"slices"
	"testing"
)

func TestParse(t *testing.T) {
	c, err := parse([]string{"-quick", "-budget", "16MiB,256MiB", "-phases", "p3,p1", "-drivers", "pebble,memory"}, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	if c.keys != 1_000_000 || c.lookups != 4096*26/20 || c.batches != 40 {
		t.Errorf("quick is %d keys, %d lookups, %d batches", c.keys, c.lookups, c.batches)
	}
	if want := []int64{256 << 20 / 20}; !slices.Equal(c.budgets, want) {
		t.Errorf("quick budgets %d, want %d", c.budgets, want)
	}
	if !slices.Equal(c.phases, []string{"p1", "p3"}) || !slices.Equal(c.drivers, []string{"memory", "pebble"}) {
		t.Errorf("phases %q, drivers %q", c.phases, c.drivers)
	}
	if c.layout.Bytes() != 96 {
		t.Errorf("rows of %d bytes by default, want 64 of embedding, 16 of state, 16 of statistics", c.layout.Bytes())
	}
}

func TestParseRefuses(t *testing.T) {
	for _, args := range [][]string{
		{"-keys", "1"}, {"-batches", "0"}, {"-s", "1"}, {"-budget", "much"}, {"-budget", "-1MiB"}, {"-budget", ""},
		{"-phases", "p4"}, {"-drivers", "none"}, {"-policy", "none"}, {"-train-ms", "-1"}, {"-getters", "0"}, {"-value-dim", "0"}, {"more"},
		{"-parts", "301"}, {"-parts", "0"}, {"-snapshot-every", "-1"}, {"-snapshot-every", "301"}, {"-external", "a"}, {"-device-seconds", "-1"},
	} {
		if _, err := parse(args, io.Discard); err == nil {
			t.Errorf("%q was accepted", args)
		}
	}
}

func TestParseBytes(t *testing.T) {
	for s, want := range map[string]int64{"64MiB": 64 << 20, "1.5GiB": 3 << 29, "4096": 4096, "2KiB": 2048} {
		if got, err := parseBytes(s); err != nil || got != want {
			t.Errorf("parseBytes(%q) = %d, %v, want %d", s, got, err, want)
		}
	}
}

func TestCells(t *testing.T) {
	c, err := parse([]string{"-budget", "2MiB,1MiB", "-drivers", "memory,ssd,pebble"}, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, x := range c.cells() {
		for _, p := range x.phases {
			got = append(got, x.driver.name+" "+sizeText(x.budget)+" "+p)
		}
	}
	want := []string{
		"memory 2MiB p1", "memory 2MiB p2",
		"ssd 2MiB p1", "ssd 2MiB load", "ssd 2MiB p2", "ssd 2MiB p3",
		"pebble 2MiB p1", "pebble 2MiB load", "pebble 2MiB p2",
		"ssd 1MiB p1", "ssd 1MiB load", "ssd 1MiB p2", "ssd 1MiB p3",
		"pebble 1MiB p1", "pebble 1MiB load", "pebble 1MiB p2",
	}
	if !slices.Equal(got, want) {
		t.Errorf("cells\n%q, want\n%q", got, want)
	}
}
