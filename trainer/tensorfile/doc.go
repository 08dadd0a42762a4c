// Package tensorfile reads and writes files of named arrays of float32.
//
//	+----------+-----------+--------------+------------------+---------+
//	| magic    | headerLen | header       | tensors          | crc32c  |
//	| 8 bytes  | uint32 LE | JSON         | float32 LE, back | uint32  |
//	|          |           | names,shapes | to back          | LE      |
//	+----------+-----------+--------------+------------------+---------+
//
// The checksum covers everything before it. The dense files of model directories have this format;
// docs/serving.md says how other programs read one, and package densefile which tensors are in it.
package tensorfile
