package main

import (
	encoding "encoding/binary"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/cespare/xxhash/v2"
)

// servedModel predicts as docs/serving.md describes it, from the files of a model and an export of
// its table, without any code of training and prediction. It supports only the model of
// TestServing.
type servedModel struct {
	keptShare float64
	tensors   map[string][]float64
	rows      map[uint64][]float64 // those that count
	waiting   int                  // rows that do not count yet
}

func readServed(t *testing.T, dir, rows string, minOccurrences uint32) *servedModel {
	t.Helper()
	var manifest struct {
		Generation string  `json:"generation"`
		Dense      string  `json:"dense"`
		KeptShare  float64 `json:"kept_share"`
	}
	if err := json.Unmarshal([]byte(read(t, filepath.Join(dir, "MODEL.json"))), &manifest); err != nil {
		t.Fatal(err)
	}
	m := &servedModel{keptShare: manifest.KeptShare, tensors: map[string][]float64{}, rows: map[uint64][]float64{}}
	m.readDense(t, read(t, filepath.Join(dir, manifest.Generation, manifest.Dense)))
	m.readRows(t, rows, minOccurrences)
	return m
}

func (m *servedModel) readDense(t *testing.T, file string) {
	t.Helper()
	var header struct {
		Tensors []struct {
			Name  string
			Shape []int
		}
	}
	length := encoding.LittleEndian.Uint32([]byte(file[8:]))
	if err := json.Unmarshal([]byte(file[12:12+length]), &header); err != nil || file[:8] != "AIBOXDN1" {
		t.Fatal(file[:8], err)
	}
	data := []byte(file[12+length:])
	for _, tensor := range header.Tensors {
		size := 1
		for _, n := range tensor.Shape {
			size *= n
		}
		for range size {
			m.tensors[tensor.Name] = append(m.tensors[tensor.Name], float64(math.Float32frombits(encoding.LittleEndian.Uint32(data))))
			data = data[4:]
		}
	}
	if len(data) != 4 {
		t.Fatalf("%d bytes behind the tensors, want the checksum", len(data))
	}
}

func (m *servedModel) readRows(t *testing.T, name string, minOccurrences uint32) {
	t.Helper()
	r := openRows(t, name)
	for {
		key, row, err := r.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		if r.Layout().Stats(row).Count < minOccurrences {
			m.waiting++
			continue
		}
		values := make([]float32, r.Layout().ValueDim)
		r.Layout().LoadValues(values, row)
		for _, v := range values {
			m.rows[key] = append(m.rows[key], float64(v))
		}
	}
}

// keyOf returns the key of a value in a space.
func keyOf(space, value string) uint64 {
	mix := func(x uint64) uint64 {
		x = (x ^ x>>33) * 0xff51afd7ed558ccd
		x = (x ^ x>>33) * 0xc4ceb9fe1a85ec53
		return x ^ x>>33
	}
	return mix(xxhash.Sum64String(value) ^ mix(xxhash.Sum64String(space)))
}

// mean returns the pooled row of a cell.
func (m *servedModel) mean(space, cell string, width int) []float64 {
	pooled := make([]float64, width)
	if cell == "" {
		return pooled
	}
	values := strings.Split(cell, "|")
	for _, value := range values {
		for i, v := range m.rows[keyOf(space, value)] { // none: 0
			pooled[i] += v / float64(len(values))
		}
	}
	return pooled
}

// predict returns the prediction of deepfm with batch normalization for a row of the small job.
func (m *servedModel) predict(t *testing.T, cells map[string]string) float64 {
	t.Helper()
	var x, missing []float64
	for _, name := range []string{"D1", "D2"} {
		if cells[name] == "" {
			x, missing = append(x, 0), append(missing, 1)
			continue
		}
		v, err := strconv.ParseFloat(cells[name], 64)
		if err != nil {
			t.Fatal(err)
		}
		x, missing = append(x, math.Copysign(math.Log1p(math.Abs(v)), v)), append(missing, 0)
	}
	x = append(x, missing...)
	user, ad := m.mean("user", cells["user"], 5), m.mean("ad", cells["ad"], 5)

	logit := math.Log(m.keptShare) + user[0] + ad[0] + m.tensors["param/output/bias"][0]
	for p, v := range x {
		logit += v * m.tensors["param/linear/weight"][p]
	}
	for i := range 4 {
		logit += user[1+i] * ad[1+i]
	}
	input := append(append(append([]float64{}, user[1:]...), ad[1:]...), x...)
	norm := func(name string, unit int) float64 { return m.tensors[name][unit] }
	for unit, weight := range m.tensors["param/output/weight"] {
		h := 0.0
		for i, v := range input {
			h += v * m.tensors["param/deep/0/weight"][i*len(m.tensors["param/output/weight"])+unit]
		}
		h = (h - norm("buffer/deep/0/norm/running_mean", unit)) / math.Sqrt(norm("buffer/deep/0/norm/running_variance", unit)+1e-5)
		logit += weight * max(0, norm("param/deep/0/norm/gamma", unit)*h+norm("param/deep/0/norm/beta", unit))
	}
	return 1 / (1 + math.Exp(-logit))
}

// TestServing checks that docs/serving.md suffices to compute the predictions of a model elsewhere.
func TestServing(t *testing.T) {
	page := read(t, filepath.Join("..", "..", "docs", "serving.md"))
	inSmallJob(t)
	set := func(command ...string) {
		for _, s := range []string{
			"generate.missing_rate=0.1", "data.negative_sampling=0.4", "model.pooling=mean", "model.batch_norm=true",
			"optimizer.dense={learning_rate: 0.02, averaging: 0.9}", "optimizer.rows={table_l2: 0.02, learning_rate: 0.3}",
			"sparse_table.admission.min_occurrences=6", "sparse_table.value_format=bfloat16",
		} {
			command = append(command, "--set", s)
		}
		ok(t, command...)
	}
	set("generate", "job.yaml")
	set("train", "job.yaml")
	ok(t, "table", "export", "model", "--to", "rows.parquet")
	ok(t, "predict", "--model-dir", "model", "--data", "eval.tsv", "--output", "scores.csv", "--columns", "D1,D2,user,ad")
	m := readServed(t, "model", "rows.parquet", 6)
	if len(m.rows) == 0 || m.waiting == 0 {
		t.Fatalf("%d rows count, %d do not", len(m.rows), m.waiting)
	}
	lines, err := csv.NewReader(strings.NewReader(read(t, "scores.csv"))).ReadAll()
	if err != nil || len(lines) != 501 {
		t.Fatalf("%d lines, %v", len(lines), err)
	}
	for _, line := range lines[1:] {
		cells := map[string]string{}
		for i, name := range lines[0] {
			cells[name] = line[i]
		}
		want := m.predict(t, cells)
		if have, err := strconv.ParseFloat(cells["prediction"], 64); err != nil || math.Abs(have-want) > 1e-6 {
			t.Errorf("%v: aibox predicts %v, want %v", line, have, want)
		}
	}
	if key := fmt.Sprintf("%#x", keyOf("user", "4711")); !strings.Contains(page, key) || !strings.Contains(ok(t, "table", "get", "model", "user=4711"), key) {
		t.Errorf("the key %s of user=4711 is not on the page, or not that of table get", key)
	}
}
