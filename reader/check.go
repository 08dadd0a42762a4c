package reader

import "aibox/reader/internal/examples"

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

// TextChunks is how many chunks of decompressed text a reader with so many threads
// holds at most.
func TextChunks(threads int) int {
	o := Options{Threads: threads, AheadChunks: defaultAheadChunks}
	return o.maxTexts()
}

// compile makes the plan for training and prediction. Its errors are *OptionsError.
func compile(o *Options) (*examples.Plan, error) {
	return examples.New(examples.Wish{
		Schema: o.Schema, GroupBy: o.GroupBy, PassThrough: o.PassThrough, KeepLists: o.KeepLists, PlainLists: o.PlainLists,
		KeepUnlabelled: o.KeepUnlabelled, KeepBadRows: o.KeepBadRows, OneByOne: o.oneByOne,
	})
}
