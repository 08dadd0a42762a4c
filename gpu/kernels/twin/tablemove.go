package twin

import "aibox/gpu/emulated"

var _ = add(emulated.Kernels{
	"take_rows": {Run: func(b *emulated.Block) {
		to, words := emulated.Slice[uint32](b, 0), b.Int32(4)
		movedRows(b, b.Int32(3), func(i int) {
			copy(to[i*words:][:words], indexedRow(b, 1, i, words))
		})
	}},
	"put_rows": {Run: func(b *emulated.Block) {
		from, words := emulated.Slice[uint32](b, 1), b.Int32(4)
		movedRows(b, b.Int32(3), func(i int) {
			copy(indexedRow(b, 0, i, words), from[i*words:][:words])
		})
	}},
})

// movedRows calls f for each row that threads of the block work on.
func movedRows(b *emulated.Block, n int, f func(i int)) {
	each := b.Geometry.Block.Y
	for i := b.Index.X * each; i < min((b.Index.X+1)*each, n); i++ {
		f(i)
	}
}

// indexedRow returns the row of argument table whose place is number i of argument 2.
func indexedRow(b *emulated.Block, table, i, words int) []uint32 {
	at := int(emulated.Slice[int32](b, 2)[i])
	return emulated.Slice[uint32](b, table)[at*words:][:words]
}
