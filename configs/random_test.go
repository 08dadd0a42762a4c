package configs

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"aibox/configs/internal/yamltree"
)

// TestRandomJobs gives jobs random values of random keys, and checks what must hold of any job that
// has no fault.
func TestRandomJobs(t *testing.T) {
	bases := []string{
		smallJob,
		"data: {format: criteo, train: [a], columns: [{name: C2, space: C1}, {name: I3, role: sparse}]}\nmodel: {kind: aibox}\noutput: {model_dir: m}",
		"data: {format: libsvm, train: [a]}\nmodel: {kind: lr}\noutput: {model_dir: m}",
		"data: {format: libffm, train: [a], columns: [{name: a, field: 0}, {name: b, role: dense, field: 1}]}\nmodel: {kind: lr}\noutput: {model_dir: m}",
		"data: {format: parquet, train: [a]}\ngenerate: {fields: [{name: f, cardinality: 10, max_values: 3}], dense_columns: 2}\nmodel: {kind: dcn}\noutput: {model_dir: m}",
	}
	rapid.Check(t, func(rt *rapid.T) {
		text := rapid.SampledFrom(bases).Draw(rt, "base")
		var sets []string
		for range rapid.IntRange(1, 12).Draw(rt, "keys") {
			k := Keys()[rapid.IntRange(0, len(Keys())-1).Draw(rt, "key")]
			path := strings.ReplaceAll(k.Path, "[].", fmt.Sprintf("[%d].", rapid.IntRange(0, 2).Draw(rt, "item")))
			sets = append(sets, path+"="+randomValue(rt, k))
			if _, err := Parse("job.yaml", []byte(text), LoadOptions{Date: "2026-11-20", Env: noEnv, Set: sets}); err != nil {
				sets = sets[:len(sets)-1]
			}
		}
		rt.Logf("--set %q", sets)
		checkParse(rt, []byte(text), sets...)
	})
}

// randomValue is a value of a type that a key takes, as YAML, which need not be allowed.
func randomValue(t *rapid.T, k *Key) string {
	one := func() string {
		if len(k.Values) > 0 && rapid.Bool().Draw(t, "word") {
			return rapid.SampledFrom(k.Values).Draw(t, "value")
		}
		if strings.Contains(k.Type(), "text") {
			return yamltree.Text(rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{"null", "~", "1e3", "a,b", "a: b", "x > 2", "#", "- a", "0x1F", "", "true", "yes", ".inf", "<<", "=", "|", "\t", "{{date}}", "é", "\u2028x", "\ufeff", "a\x7f", "\U0001F600", "10m", "1 pass", "a/../b", "hdfs://x:1/y"})).Draw(t, "text"))
		}
		if k.Type() == "true or false" {
			return fmt.Sprint(rapid.Bool().Draw(t, "bool"))
		}
		if rapid.Bool().Draw(t, "fraction") {
			return fmt.Sprint(rapid.Float64().Draw(t, "number"))
		}
		return rapid.SampledFrom([]string{"0", "1", "-1", "2", "16", "1e3", "1_000", "0.5", "1.5", "-0", "1e-300", "9223372036854775807", "18446744073709551615", "4096", "1MiB", "7.5k", "1.1GB", "1.0", "3e5"}).Draw(t, "number")
	}
	if !strings.HasPrefix(k.Type(), "list") {
		return one()
	}
	var items []string
	for range rapid.IntRange(0, 3).Draw(t, "items") {
		switch k.Type() {
		case "list of transforms":
			items = append(items, rapid.SampledFrom([]string{"log1p", "standardize", "{clip: {min: -1.5}}", "{clip: {min: 0, max: 1e300}}", "{bucketize: {boundaries: [-1e-7, 0, 1e20]}}", "{standardize: {mean: 1e-300, std: 0}}"}).Draw(t, "transform"))
		case "list of mappings":
			return "[{name: z, role: dense, dense: []}]"
		default:
			items = append(items, one())
		}
	}
	return "[" + strings.Join(items, ", ") + "]"
}
