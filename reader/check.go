package reader

// Check reports the faults of the options for which Open would fail before it
// opens any file.
func Check(o Options) error {
	o, err := o.withDefaults()
	if err != nil {
		return err
	}
	_, err = compile(&o)
	return err
}

// TextChunks is the maximum number of chunks of decompressed text that a reader with that many
// threads holds.
func TextChunks(threads int) int {
	o := Options{Threads: threads, AheadChunks: defaultAheadChunks}
	return o.maxTexts()
}
