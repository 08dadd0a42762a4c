// Package wire has the messages of HDFS's protocols, whose types are those of the client library
// (github.com/colinmarc/hdfs), found by name in the protobuf registry: their Go types are internal
// to the library.
package wire
