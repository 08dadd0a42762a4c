// Package login logs in to Kerberos, for calls of NameNodes: with a key table, or with the ticket
// cache that kinit writes (login.go). krb5conf.go reads krb5.conf with what it includes.
package login
