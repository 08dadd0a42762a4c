// Package readrate measures how many random reads per second the device of a directory
// can do, with the direct reads that package sparsetable makes. This rate bounds the speed
// of a table that has to read cold rows.
//
//	f, err := readrate.Create(ctx, dir, 2<<30)
//	perSecond, err := f.Measure(ctx, readrate.Load{ReadBytes: 4096, Depth: 128, Duration: 2 * time.Second})
//	err = f.Remove()
//
// The file should be as large as the table: devices answer faster from a file
// that their own cache holds.
package readrate
