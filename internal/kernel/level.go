package kernel

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"sync/atomic"
)

// The instruction set levels, lowest first.
const (
	levelPortable int32 = iota
	levelAVX2           // AVX2 and FMA
	levelAVX512         // AVX-512F and what levelAVX2 has
)

var levelNames = [...]string{"portable", "avx2", "avx512"}

// levelVariable names the environment variable that lowers the level.
const levelVariable = "AIBOX_CPU"

// level is the level in use, at most bestLevel.
var level atomic.Int32

func init() {
	level.Store(bestLevel)
	// A wrong value cannot be reported from here and must not stop programs that
	// merely import the package; CheckEnvironment reports it.
	if name := os.Getenv(levelVariable); name != "" {
		_ = SetLevel(name)
	}
}

// CheckEnvironment returns an error if AIBOX_CPU is set to something that is
// not a level of this processor; the variable is ignored in that case.
func CheckEnvironment() error {
	name := os.Getenv(levelVariable)
	if name == "" {
		return nil
	}
	if _, err := findLevel(name); err != nil {
		return fmt.Errorf("environment variable %s: %w", levelVariable, err)
	}
	return nil
}

// Level returns the instruction set level in use: "avx512", "avx2" or
// "portable".
func Level() string { return levelNames[level.Load()] }

// Levels returns the levels of this processor, "portable" first.
func Levels() []string { return slices.Clone(levelNames[:bestLevel+1]) }

// SetLevel chooses the level by name. Results do not depend on it; it is there
// for tests and measurements. It fails if the processor lacks the level.
func SetLevel(name string) error {
	l, err := findLevel(name)
	if err == nil {
		level.Store(l)
	}
	return err
}

func findLevel(name string) (int32, error) {
	for i, n := range Levels() {
		if n == name {
			return int32(i), nil
		}
	}
	return 0, fmt.Errorf("kernel: this processor has no level %q; it has %s", name, strings.Join(Levels(), ", "))
}
