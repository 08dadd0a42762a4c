package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"

	"aibox/sparsetable/readrate"
)

// deviceRate is a measurement of the device alone.
type deviceRate struct {
	When      string  `json:"when"` // before or after the phases
	Tool      string  `json:"tool"` // ours (package readrate), or fio
	ReadBytes int     `json:"read_bytes"`
	Depth     int     `json:"depth"` // reads in flight
	PerSecond float64 `json:"reads_per_second"`
	Direct    bool    `json:"direct"` // else through the page cache, which the file system insists on
}

// deviceDepths are the numbers of reads in flight at which devices reach their best rate.
var deviceDepths = []int{128, 256}

// blockBytes is the size of reads that peers make.
const blockBytes = 4096

// deviceMeter measures the device that the stores are on.
type deviceMeter struct {
	file    *readrate.File
	lasting time.Duration // of each measurement
	fio     string        // its path; empty: not installed
	rates   []deviceRate
}

// newDeviceMeter makes a file as large as a full store.
func (c *config) newDeviceMeter(ctx context.Context) (*deviceMeter, error) {
	m := &deviceMeter{lasting: time.Duration(c.deviceSeconds * float64(time.Second))}
	if path, err := exec.LookPath("fio"); err == nil {
		m.fio = path
	}
	var err error
	m.file, err = readrate.Create(ctx, filepath.Join(c.dir, "device"), int64(c.keys)*int64(keyBytes+c.layout.Bytes()))
	return m, err
}

// measure measures reads of a size with every tool and at every depth.
func (m *deviceMeter) measure(ctx context.Context, when string, readBytes int) error {
	for _, depth := range deviceDepths {
		rate, err := m.file.Measure(ctx, readrate.Load{ReadBytes: readBytes, Depth: depth, Duration: m.lasting, Seed: uint64(len(m.rates))})
		if err != nil {
			return err
		}
		m.rates = append(m.rates, deviceRate{when, "ours", readBytes, depth, rate, m.file.Direct()})
		if m.fio == "" {
			continue
		}
		if rate, err = m.runFio(ctx, readBytes, depth); err != nil {
			// fio may not be built for this kernel; then there are only our own figures.
			fmt.Fprintln(os.Stderr, "table:", err)
			m.fio = ""
			continue
		}
		m.rates = append(m.rates, deviceRate{when, "fio", readBytes, depth, rate, true})
	}
	return nil
}

// runFio measures with fio, the file being there.
func (m *deviceMeter) runFio(ctx context.Context, readBytes, depth int) (perSecond float64, err error) {
	var said bytes.Buffer
	c := exec.CommandContext(ctx, m.fio, "--name=device", "--filename="+m.file.Path(), "--rw=randread", "--bs="+strconv.Itoa(readBytes),
		"--ioengine=libaio", "--iodepth="+strconv.Itoa(depth), "--direct=1", "--norandommap", "--time_based", "--readonly",
		"--runtime="+strconv.FormatInt(m.lasting.Milliseconds(), 10)+"ms", "--thread", "--output-format=json")
	c.Stderr = &said
	out, err := c.Output()
	if err != nil {
		return 0, fmt.Errorf("fio: %w: %s", err, bytes.TrimSpace(said.Bytes()))
	}
	var result struct {
		Jobs []struct {
			Read struct {
				IOPS float64 `json:"iops"`
			} `json:"read"`
		} `json:"jobs"`
	}
	if err := json.Unmarshal(out, &result); err != nil || len(result.Jobs) != 1 {
		return 0, fmt.Errorf("fio's result is not understood: %w", err)
	}
	return result.Jobs[0].Read.IOPS, nil
}

// finish measures the device again after the phases, also with reads of the size of
// ssd's, and sets the results' shares of the device.
func (m *deviceMeter) finish(ctx context.Context, results []result) error {
	own := meanReadBytes(results)
	sizes := []int{blockBytes}
	if own != 0 && own != blockBytes {
		sizes = append(sizes, own)
	}
	for _, n := range sizes {
		if err := m.measure(ctx, "after", n); err != nil {
			return err
		}
	}
	m.shares(results, own)
	return nil
}

// The sizes of measured reads are multiples of deviceUnit.
const deviceUnit = 512

// meanReadBytes is the mean size of the reads of ssd's pulls in p2, rounded up
// to a multiple of deviceUnit; 0 when there were none.
func meanReadBytes(results []result) int {
	reads, bytes := 0.0, 0.0
	for _, r := range results {
		if r.Driver == ssdDriver.name && r.Phase == phaseFull && r.measured() {
			n, _ := r.Store["device_reads"].(float64)
			b, _ := r.Store["read_bytes"].(float64)
			reads, bytes = reads+n, bytes+b
		}
	}
	if reads == 0 {
		return 0
	}
	return (int(bytes/reads) + deviceUnit - 1) / deviceUnit * deviceUnit
}

// shares fills in which share of the device's best rate the pulls use. The rate is that
// of reads of own bytes for ssd, and of 4 KiB for others.
func (m *deviceMeter) shares(results []result, own int) {
	best := map[int]float64{}
	for _, d := range m.rates {
		best[d.ReadBytes] = max(best[d.ReadBytes], d.PerSecond)
	}
	for i := range results {
		r := &results[i]
		size := blockBytes
		if r.Driver == ssdDriver.name && own != 0 {
			size = own
		}
		r.DeviceShare = r.ReadsPerSecond / best[size]
		for p := range r.Parts {
			r.Parts[p].DeviceShare = r.Parts[p].ReadsPerSecond / best[size]
		}
	}
}

// close deletes the file.
func (m *deviceMeter) close() error {
	return errors.Join(m.file.Remove(), os.Remove(filepath.Dir(m.file.Path())))
}
