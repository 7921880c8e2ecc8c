/* SPDX-License-Identifier: Apache-2.0 */
/* The rights that each part of `aquifer run` keeps. The pager is confined as
 * daemons are and has none of these. */
#ifndef AQ_RUN_RIGHTS_H
#define AQ_RUN_RIGHTS_H

#include <linux/capability.h>

#include "base/base.h"

/* Supervisor: signals for a program of another user, also the one that the
 * kernel sends in its name when it dies. */
#define RUN_CAPS_SUPERVISOR (1ull << CAP_KILL)
/* Broker: signals, userfaultfds with events of fork, and what /proc shows of a
 * program of another user. */
#define RUN_CAPS_BROKER (1ull << CAP_KILL | 1ull << CAP_SYS_PTRACE)

/* Confines the pager as daemons are (confine.h), with the files that a NIC in
 * this rack needs; NULL: the configured one. Before its first thread.
 * error_last() has the words. */
int run_confine(const char *rack) MUST_CHECK;

#endif
