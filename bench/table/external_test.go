package main

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"aibox/sparsetable"
)

// externalArg makes the test binary an external store; how it behaves follows.
const externalArg = "-external"

// playExternal is an external store for tests: a Go map, saved as a list of the
// keys that were loaded.
func playExternal(behaviour string, in io.Reader, out io.Writer) error {
	var j externalJob
	if err := json.NewDecoder(in).Decode(&j); err != nil {
		return err
	}
	if behaviour == "crash" {
		return errors.New("crash")
	}
	if behaviour == "unavailable" {
		_, err := fmt.Fprint(out, `{"unavailable":"not today"}`)
		return err
	}
	batches, err := readKeys(j.Trace)
	if err != nil {
		return err
	}
	l := sparsetable.Layout{ValueDim: j.ValueDim, StateDim: j.StateDim}
	saved := filepath.Join(j.Dir, "saved")
	rowOf := map[uint64][]float32{}
	if j.Phase == phaseFull {
		loaded, err := readKeys(saved)
		if err != nil {
			return err
		}
		for _, k := range slices.Concat(loaded...) {
			rowOf[k] = make([]float32, l.Words())
			loadRow(l, k, rowOf[k])
		}
	}
	x := externalResult{OpenMS: 1, LoadMS: 2, SaveMS: 3, BaseBytes: 10, PeakBytes: 30}
	if j.Phase == phaseLoad {
		b, err := os.ReadFile(j.Trace)
		if err := errors.Join(err, os.WriteFile(saved, b, 0o666)); err != nil {
			return err
		}
		return json.NewEncoder(out).Encode(x)
	}
	var digest uint64
	for i, keys := range batches {
		r := &flatRows{words: l.Words(), data: make([]float32, len(keys)*l.Words())}
		for i, k := range keys {
			if old, ok := rowOf[k]; ok {
				copy(r.Row(i), old)
			} else {
				initRow(l, k, r.Row(i))
			}
		}
		digest = update(l, len(keys), r, digest)
		for i, k := range keys {
			rowOf[k] = r.Row(i)
		}
		x.PullMS, x.PushMS = append(x.PullMS, float64(i+1)), append(x.PushMS, 1)
		x.DeviceReads, x.ReadBytes, x.WriteBytes = append(x.DeviceReads, 10), append(x.ReadBytes, 5120), append(x.WriteBytes, 7)
	}
	x.Digest = fmt.Sprintf("%016x", digest)
	switch behaviour {
	case "wrong":
		x.Digest = "0123456789abcdef"
	case "short":
		x.PushMS = x.PushMS[1:]
	}
	return json.NewEncoder(out).Encode(x)
}

// readKeys reads a file of keys.
func readKeys(name string) (batches [][]uint64, err error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	r := bufio.NewReader(f)
	for {
		var n uint64
		if err := binary.Read(r, binary.LittleEndian, &n); errors.Is(err, io.EOF) {
			return batches, nil
		} else if err != nil {
			return nil, err
		}
		keys := make([]uint64, n)
		if err := binary.Read(r, binary.LittleEndian, keys); err != nil {
			return nil, err
		}
		batches = append(batches, keys)
	}
}

// An external store gets the same work as the others and stands beside them.
func TestExternal(t *testing.T) {
	rep, text := runTiny(t, "-phases", "p1,p2", "-drivers", "memory", "-parts", "3", "-external", "other="+os.Args[0]+" "+externalArg+" good")
	digests := map[string][]string{}
	phases := []string{}
	for _, r := range rep.Results {
		if r.Phase != phaseLoad {
			digests[r.Phase] = append(digests[r.Phase], r.Digest)
		}
		if r.Driver != "other" {
			continue
		}
		phases = append(phases, r.Phase)
		if r.OpenMS != 1 || r.SaveMS != 3 || r.StorePeak != 20 || r.BudgetBytes != 16<<20 {
			t.Errorf("other %s: %+v", r.Phase, r)
		}
		if r.Phase == phaseLoad {
			if r.LoadMS != 2 || r.DiskBytes == 0 {
				t.Errorf("load: %+v", r)
			}
			continue
		}
		if r.Batches != 6 || r.PullMS != 3 || r.BatchMS != 4 || r.BatchMSP99 != 7 || r.DeviceReads != 10 || r.DeviceReadBytes != 5120 || r.DeviceWriteBytes != 7 {
			t.Errorf("other %s: %+v", r.Phase, r.figures)
		}
		if len(r.Parts) != 3 || r.Parts[2].Batches != 2 || r.Parts[0].PullMS != 1 || r.Parts[2].PullMS != 5 || r.Parts[2].DeviceReads != 10 {
			t.Errorf("batches of %s two by two: %+v", r.Phase, r.Parts)
		}
	}
	if want := []string{phaseCold, phaseLoad, phaseFull}; !slices.Equal(phases, want) {
		t.Errorf("phases %q, want %q\n%s", phases, want, text)
	}
	for phase, d := range digests {
		if len(d) != 2 || d[0] != d[1] || d[0] == "" {
			t.Errorf("digests of %s: %q", phase, d)
		}
	}
}

func TestExternalTrouble(t *testing.T) {
	for behaviour, want := range map[string]string{
		"wrong": "WRONG other p1", "short": "5 elements in push_ms", "crash": "FAILED other p1 16MiB: the process ended", "unavailable": "other: not today",
	} {
		var out strings.Builder
		err := command(t.Context(), []string{"-keys", "3000", "-batches", "6", "-lookups", "800", "-budget", "16MiB", "-phases", "p1", "-drivers", "memory", "-device-seconds", "0",
			"-dir", t.TempDir(), "-external", "other=" + os.Args[0] + " " + externalArg + " " + behaviour}, &out)
		if (err != nil) != (behaviour != "unavailable") || !strings.Contains(out.String(), want) {
			t.Errorf("%s: %v, want %q in\n%s", behaviour, err, want, out.String())
		}
	}
}

func TestParseExternal(t *testing.T) {
	if _, err := parseExternal("a="+os.Args[0], drivers()); err != nil {
		t.Error(err)
	}
	for _, s := range []string{"a", "a=", "=" + os.Args[0], "memory=" + os.Args[0], "a/b=" + os.Args[0], "a=/no/such/program"} {
		if _, err := parseExternal(s, drivers()); err == nil {
			t.Errorf("%q was accepted", s)
		}
	}
}

// runExternalMain is TestMain's part.
func runExternalMain() bool {
	if len(os.Args) != 3 || os.Args[1] != externalArg {
		return false
	}
	if err := playExternal(os.Args[2], os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	return true
}
