package main

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"

	"aibox/configs"
	"aibox/reader"
	"aibox/reader/source"
	"aibox/trainer/jobparts"
	"aibox/trainer/jobsource"
)

// numbering gives keys numbers in the order of their first use, as a dictionary does that
// prepares a log for an embedding layer.
type numbering map[uint64]int64

// number writes the log of a job as matrices without headers, in the byte order of the
// machine: for train and eval the labels (N) and the dense features (N, columns), both
// float32, and the numbers of the keys (N, fields), int64. Each field of an example must
// have one value.
func number(ctx context.Context, job *configs.Job, dir string) error {
	schema, err := jobparts.Schema(job)
	if err != nil {
		return err
	}
	sources := jobsource.New(job, slog.New(slog.DiscardHandler))
	defer sources.Close()
	numbers := numbering{}
	for _, set := range []struct {
		name string
		uris []string
	}{{"train", job.Data.Train}, {"eval", job.Data.Eval}} {
		if err := numbers.write(ctx, sources, schema, set.uris, filepath.Join(dir, set.name)); err != nil {
			return err
		}
	}
	return nil
}

func (n numbering) write(ctx context.Context, sources *source.Sources, schema reader.Schema, uris []string, path string) error {
	rd, err := reader.Open(ctx, reader.Options{Sources: sources, URIs: uris, Schema: schema, BatchSize: 4096, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	defer rd.Close()
	var files [3]*os.File
	var to [3]*bufio.Writer
	for i, name := range []string{".labels", ".dense", ".ids"} {
		f, err := os.Create(path + name)
		if err != nil {
			return err
		}
		defer f.Close()
		files[i], to[i] = f, bufio.NewWriterSize(f, 1<<20)
	}
	fields := len(schema.Fields())
	var ofPass []int64 // the numbers of a pass's keys, which are in the order of their first use, too
	for {
		pass, err := rd.Next(ctx)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		ofPass = ofPass[:0]
		for _, key := range pass.Keys {
			ofPass = append(ofPass, n.of(key))
		}
		for i := range pass.Batches {
			b := &pass.Batches[i]
			if len(b.Index) != b.N*fields {
				return fmt.Errorf("%d examples of %d fields have %d values, want one each", b.N, fields, len(b.Index))
			}
			ids := make([]int64, len(b.Index))
			for at, row := range b.Index {
				ids[at] = ofPass[b.Rows[row]]
			}
			for k, data := range []any{b.Labels, b.Dense, ids} {
				if err := binary.Write(to[k], binary.NativeEndian, data); err != nil {
					return err
				}
			}
		}
	}
	for i := range to {
		if err := errors.Join(to[i].Flush(), files[i].Close()); err != nil {
			return err
		}
	}
	return nil
}

func (n numbering) of(key uint64) int64 {
	id, ok := n[key]
	if !ok {
		id = int64(len(n))
		n[key] = id
	}
	return id
}
