package source

import (
	"errors"
	"testing"
)

// TestRefuseOverwriteHDFS checks that an output on HDFS that is also an input, by whatever name of
// the cluster, is refused without contacting the cluster.
func TestRefuseOverwriteHDFS(t *testing.T) {
	s := New(Options{HDFS: HDFSOptions{ConfDir: pairConf(t, "nn1.invalid:8020", "nn2.invalid:8020")}})
	t.Cleanup(func() { _ = s.Close() })
	for _, c := range []struct {
		input, output string
		refused       bool
	}{
		{"hdfs://pair/logs/a", "hdfs://pair/logs/a", true},
		{"hdfs://pair/logs/a", "hdfs://pair/logs/../logs//a", true},
		{"hdfs://pair/logs/a", "hdfs://nn2.invalid:8020/logs/a", true},
		{"hdfs://pair/logs/*.csv", "hdfs://pair/logs/new.csv", true},
		{"hdfs://pair/logs/**", "hdfs://pair/logs/dt=1/new.csv", true},
		{"hdfs://pair/logs", "hdfs://pair/logs/new.csv", true},
		{"hdfs://pair/logs/*.csv", "hdfs://pair/logs/new.parquet", false},
		{"hdfs://pair/logs", "hdfs://pair/scores/new.csv", false},
		{"hdfs://other.invalid:8020/logs/a", "hdfs://pair/logs/a", false},
		{"/logs/a", "hdfs://pair/logs/a", false},
	} {
		var same *OverwriteError
		err := s.RefuseOverwrite(t.Context(), []string{c.input}, []string{c.output})
		if errors.As(err, &same) != c.refused || !c.refused && err != nil {
			t.Errorf("input %s, output %s: %v", c.input, c.output, err)
		}
	}
}
