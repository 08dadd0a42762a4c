// Package tensorfile is a file of named arrays of float32.
//
//	+----------+-----------+--------------+------------------+---------+
//	| magic    | headerLen | header       | tensors          | crc32c  |
//	| 8 bytes  | uint32 LE | JSON         | float32 LE, back | uint32  |
//	|          |           | names,shapes | to back          | LE      |
//	+----------+-----------+--------------+------------------+---------+
//
// The checksum covers all that precedes it. The dense files of model directories have this form;
// docs/serving.md says how to read one elsewhere, and package densefile which tensors are in it.
package tensorfile
