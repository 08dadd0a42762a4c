// Package wire provides the messages of HDFS's protocols. Their Go types are internal to the client
// library (github.com/colinmarc/hdfs), so they are found by name in the protobuf registry.
package wire
