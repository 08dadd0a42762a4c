// Package sasl secures connections to DataNodes.
//
// A secured DataNode requires a SASL handshake with the mechanism DIGEST-MD5 (RFC
// 2831) before a request (handshake.go). The data that follow are
// plain ("auth"), signed ("auth-int"), or encrypted ("auth-conf"): by AES if the
// DataNode supports it, otherwise by RC4 (layer.go).
//
//	client                                      DataNode
//	0xDEADBEEF, empty message        ->
//	                                 <-         challenge
//	response, suite AES-CTR wished   ->
//	                                 <-         proof, AES keys (encrypted by RC4)
package sasl
