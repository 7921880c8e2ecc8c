/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What `aquifer doctor` looks at. A check is one function and one row of
 * cli_checks[]; each gives what it found and, unless all is well, the command
 * that fixes it. No check changes the machine.
 */
#ifndef AQ_CLI_CHECK_H
#define AQ_CLI_CHECK_H

#include "base/base.h"

enum cli_check_state {
	CLI_CHECK_OK,
	CLI_CHECK_WARN,	   /* works, but not as well as it could */
	CLI_CHECK_MISSING, /* not there */
};

struct cli_check_result {
	enum cli_check_state state;
	char found[320];
	char fix[320]; /* a command, or empty */
};

struct cli_check {
	const char *name;
	bool essential; /* without it Aquifer cannot work here */
	const char *why;
	void (*run)(struct cli_check_result *out);
};

/* Ends with a row whose name is NULL. */
extern const struct cli_check cli_checks[];

/* For the functions in check_*.c. */
void cli_check_found(struct cli_check_result *out, enum cli_check_state state,
		     const char *fmt, ...) PRINTF(3, 4);
void cli_check_fix(struct cli_check_result *out, const char *fmt, ...)
	PRINTF(2, 3);
/* The first line of a small file; -errno if there is none. */
int cli_check_read(const char *path, char *buf, size_t len_bytes) MUST_CHECK;

/* An adapter on a PCI bus, which sysfs shows in that folder. */
bool cli_check_find_adapter(const char *bus, char found[64]);

void cli_check_kernel(struct cli_check_result *out);
void cli_check_cpus(struct cli_check_result *out);
void cli_check_realtime(struct cli_check_result *out);
void cli_check_memlock(struct cli_check_result *out);
void cli_check_hugepages(struct cli_check_result *out);
void cli_check_thp(struct cli_check_result *out);
void cli_check_memfd(struct cli_check_result *out);
void cli_check_userfaultfd(struct cli_check_result *out);
void cli_check_rdma(struct cli_check_result *out);
void cli_check_roce_port(struct cli_check_result *out);
void cli_check_roce_mtu(struct cli_check_result *out);
void cli_check_rundir(struct cli_check_result *out);
void cli_check_verbs(struct cli_check_result *out);
void cli_check_confine(struct cli_check_result *out);
void cli_check_udp_buffers(struct cli_check_result *out);
void cli_check_rundir_mode(struct cli_check_result *out);
void cli_check_secrets(struct cli_check_result *out);
void cli_check_tls(struct cli_check_result *out);
void cli_check_certs(struct cli_check_result *out);
void cli_check_password(struct cli_check_result *out);
void cli_check_units(struct cli_check_result *out);

/* The way to another machine, an address or a name, in the rows of
 * client/reach.h. error_last() has the words. */
struct client_reach;

int cli_check_peer_create(const char *host,
			  struct client_reach **out) MUST_CHECK;
void cli_check_peer_run(struct client_reach *p, unsigned row,
			struct cli_check_result *out);

#endif
