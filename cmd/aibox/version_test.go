package main

import (
	"strings"
	"testing"

	"aibox/gpu/cuda"
)

// TestVersionDevices checks that version says whether devices can be used, and succeeds if they
// cannot.
func TestVersionDevices(t *testing.T) {
	want := "devices: built without CUDA\n"
	if cuda.Built {
		want = "devices: built with CUDA"
	}
	for _, args := range []string{"version", "--version"} {
		got := aibox(args)
		if got.code != exitDone || !strings.Contains(got.stdout, want) {
			t.Errorf("%s: exit code %d, %q, want %q", args, got.code, got.stdout, want)
		}
	}
}
