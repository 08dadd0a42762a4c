package rowschema

import "testing"

func TestFormatOf(t *testing.T) {
	for file, want := range map[string]Format{
		"a.csv": FormatCSV, "dir.tsv/b.TSV.gz": FormatTSV, "x.svm.zst": FormatLibSVM, "x.libffm": FormatLibFFM,
		"hdfs://nn:8020/p/y.parquet": FormatParquet, "day.criteo.bz2": FormatCriteo,
	} {
		if got, ok := FormatOf(file); !ok || got != want {
			t.Errorf("%s: %v, %v, want %v", file, got, ok, want)
		}
	}
	for _, file := range []string{"", "csv", "a.gz", "a.csv.old", "x.doc"} {
		if got, ok := FormatOf(file); ok {
			t.Errorf("%q: %v, want nothing", file, got)
		}
	}
}
