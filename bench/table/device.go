package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"
)

// deviceRate is a measurement of the device alone.
type deviceRate struct {
	When      string  `json:"when"` // before or after the phases
	ReadBytes int     `json:"read_bytes"`
	Depth     int     `json:"depth"` // reads in flight
	PerSecond float64 `json:"reads_per_second"`
}

// deviceDepths are the numbers of reads in flight at which devices reach their best rate.
var deviceDepths = []int{128, 256}

// blockBytes is the size of reads that peers make.
const blockBytes = 4096

// deviceMeter measures the device that the stores are on, with fio.
type deviceMeter struct {
	fio     string // its path; empty: it does not work here
	file    string // that it makes and reads
	bytes   int64  // of the file: as many as a full store has
	lasting time.Duration
	rates   []deviceRate
}

// newDeviceMeter returns nil if fio is not installed.
func (c *config) newDeviceMeter() *deviceMeter {
	fio, err := exec.LookPath("fio")
	if err != nil {
		fmt.Fprintln(os.Stderr, "table: the device is not measured, because fio is not installed")
		return nil
	}
	lasting := time.Duration(c.deviceSeconds * float64(time.Second))
	return &deviceMeter{fio: fio, file: filepath.Join(c.dir, "device"), bytes: c.tableBytes(), lasting: lasting}
}

// measure measures reads of a size at every depth, as far as fio can.
func (m *deviceMeter) measure(ctx context.Context, when string, readBytes int) {
	for _, depth := range deviceDepths {
		if m.fio == "" {
			return
		}
		rate, err := m.run(ctx, readBytes, depth)
		if err != nil {
			fmt.Fprintln(os.Stderr, "table: the device is not measured:", err)
			m.fio = ""
			return
		}
		m.rates = append(m.rates, deviceRate{when, readBytes, depth, rate})
	}
}

// run measures once. fio makes the file the first time.
func (m *deviceMeter) run(ctx context.Context, readBytes, depth int) (perSecond float64, err error) {
	var said bytes.Buffer
	c := exec.CommandContext(ctx, m.fio, "--name=device", "--filename="+m.file, "--size="+strconv.FormatInt(m.bytes, 10), "--rw=randread", "--bs="+strconv.Itoa(readBytes),
		"--ioengine=libaio", "--iodepth="+strconv.Itoa(depth), "--direct=1", "--norandommap", "--time_based",
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
func (m *deviceMeter) finish(ctx context.Context, results []result) {
	own := meanReadBytes(results)
	m.measure(ctx, "after", blockBytes)
	if own != 0 && own != blockBytes {
		m.measure(ctx, "after", own)
	}
	m.shares(results, own)
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
		if best[size] == 0 {
			continue // it could not be measured
		}
		r.DeviceShare = r.ReadsPerSecond / best[size]
		for p := range r.Parts {
			r.Parts[p].DeviceShare = r.Parts[p].ReadsPerSecond / best[size]
		}
	}
}

// close deletes the file.
func (m *deviceMeter) close() error {
	if err := os.Remove(m.file); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
