package reader

// Check reports the faults of the options for which Open would fail before it
// opens any file.
func Check(o Options) error {
	o, err := o.withDefaults()
	if err != nil {
		return err
	}
	if _, err := compile(&o); err != nil {
		return optionsErrorf("reader: %w", err)
	}
	return nil
}

// TextChunks is how many chunks of decompressed text a reader with so many threads
// holds at most.
func TextChunks(threads int) int {
	o := Options{Threads: threads, AheadChunks: defaultAheadChunks}
	return o.maxTexts()
}
