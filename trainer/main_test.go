package trainer

import (
	"os"
	"testing"

	"aibox/trainer/internal/testjobs"
)

func TestMain(m *testing.M) {
	if code, is := crashChild(); is {
		os.Exit(code)
	}
	if code, is := nightChild(); is {
		os.Exit(code)
	}
	os.Exit(testjobs.Main(m))
}
