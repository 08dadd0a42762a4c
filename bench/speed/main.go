// Command speed takes steps of training, and numbers the keys of a log, on behalf of
// compare.py, which sets them beside PyTorch. It reads one request a line, a JSON object,
// and answers each with one; README.md says how to run the comparison.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"log"
	"os"

	"aibox/configs"
	"aibox/internal/kernel"
)

// request asks for one of these, by Op:
//
//	peak     fused multiply-adds a second on registers
//	step     steps of a job over mini-batches that were read before
//	number   the log of a job as binary files, with keys as numbers
//	read     passes of a job's data from the reader alone
//	pull     rows of passes that a table has in memory, without training
type request struct {
	Op  string   `json:"op"`
	Job string   `json:"job"` // path of a job file
	Set []string `json:"set"` // overrides of its keys

	// Of step, read and pull:
	Examples int64   `json:"examples"` // how many are read; of step at the first request for a job
	Seconds  float64 `json:"seconds"`  // how long steps are taken, or rows pulled, at least
	Rounds   int     `json:"rounds"`   // of step: how often the mini-batches of a pass are trained on before it ends; 0: once
	Chain    bool    `json:"chain"`    // of step: the operations of captured graphs of CUDA devices run one after the other
	Profile  string  `json:"profile"`  // of step: file for a profile of processor time; "": none

	Output     string `json:"output"`      // a directory for number; of pull one for a table on SSD, "": a table in memory
	CacheBytes int64  `json:"cache_bytes"` // of pull: memory of a table on SSD
}

func main() {
	log.SetFlags(0)
	log.SetPrefix("speed: ")
	var s server
	answers := json.NewEncoder(os.Stdout)
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		answer, err := s.serve(context.Background(), lines.Bytes())
		if err == nil {
			err = answers.Encode(answer)
		}
		if err != nil {
			log.Fatalf("request %s: %v", lines.Bytes(), err)
		}
	}
	if err := lines.Err(); err != nil {
		log.Fatal(err)
	}
}

// server keeps what the last request for steps has opened: the next one is mostly for
// the same job.
type server struct {
	key   string
	steps *steps
}

func (s *server) serve(ctx context.Context, line []byte) (any, error) {
	var r request
	if err := json.Unmarshal(line, &r); err != nil {
		return nil, err
	}
	if r.Op == "peak" {
		return map[string]float64{"fma": kernel.PeakFMA(kernel.Threads())}, nil
	}
	job, err := configs.Load(r.Job, configs.LoadOptions{Set: r.Set})
	if err != nil {
		return nil, err
	}
	switch r.Op {
	case "number":
		return struct{}{}, number(ctx, job, r.Output)
	case "read":
		return readAlone(ctx, job, r.Examples)
	case "pull":
		return pullCached(ctx, job, &r)
	case "step":
		if key := fmt.Sprint(r.Job, r.Set, r.Examples, r.Chain); s.key != key {
			if err := s.steps.close(); err != nil {
				return nil, err
			}
			s.key, s.steps = key, nil // which frees its memory
			if s.steps, err = openSteps(ctx, job, &r); err != nil {
				return nil, err
			}
		}
		return s.steps.take(&r)
	}
	return nil, fmt.Errorf("no operation %q", r.Op)
}
