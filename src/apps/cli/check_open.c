/* SPDX-License-Identifier: Apache-2.0 */
/* Checks of listeners that others can reach: TCP without TLS, and gateways
 * without a password. They look at rack.ini and at the daemons that run in this
 * network. */
#include <arpa/inet.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/config.h"
#include "base/config_named.h"
#include "cli_check.h"

enum {
	WORDS_BYTES = 4096,
	WORDS_MAX = 64,
};

/* The words of a process. */
struct words {
	char text[WORDS_BYTES];
	const char *word[WORDS_MAX];
	unsigned count;
};

/* What is open, in words that fit into a result. */
struct listeners {
	unsigned count;
	size_t used;
	char text[240];
};

static void add(struct listeners *d, const char *fmt, ...) PRINTF(2, 3);

static void add(struct listeners *d, const char *fmt, ...)
{
	size_t room = sizeof(d->text) - d->used;
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(d->text + d->used, room, fmt, ap);
	va_end(ap);
	if (n > 0 && (size_t)n < room)
		d->used += (size_t)n;
	else
		d->text[d->used] = '\0'; /* what is left out is counted */
	d->count++;
}

/* ---- addresses ---------------------------------------------------------- */

/* "ADDRESS:PORT" or "ADDRESS"; a name counts as one that others can reach. */
static bool is_public(const char *text)
{
	const char *colon = strrchr(text, ':');
	char host[INET6_ADDRSTRLEN + 2];
	struct in6_addr six;
	size_t n = strlen(text);

	if (text[0] == '\0' || strncmp(text, "unix:", 5) == 0)
		return false;
	/* An IPv6 address without brackets has no port. */
	if (colon && inet_pton(AF_INET6, text, &six) != 1)
		n = (size_t)(colon - text);
	if (text[0] == '[' && n >= 2) {
		text++;
		n -= 2;
	}
	if (n >= sizeof(host))
		return true;
	memcpy(host, text, n);
	host[n] = '\0';
	return strncmp(host, "127.", 4) != 0 && strcmp(host, "::1") != 0 &&
	       strcmp(host, "localhost") != 0;
}

/* ---- processes ---------------------------------------------------------- */

static bool read_words(const char *pid, struct words *w)
{
	char path[300];
	ssize_t n;
	int fd;

	(void)snprintf(path, sizeof(path), "/proc/%.20s/cmdline", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	n = read(fd, w->text, sizeof(w->text) - 1);
	(void)close(fd); /* only read */
	if (n <= 0)
		return false;
	w->text[n] = '\0';
	w->count = 0;
	for (char *p = w->text; p < w->text + n && w->count < WORDS_MAX;
	     p += strlen(p) + 1)
		w->word[w->count++] = p;
	return true;
}

/* The value of an option, "" where it is not given. */
static const char *value_of(const struct words *w, const char *option)
{
	size_t n = strlen(option);

	for (unsigned i = 2; i < w->count; i++) {
		if (strncmp(w->word[i], option, n) != 0)
			continue;
		if (w->word[i][n] == '=')
			return w->word[i] + n + 1;
		if (w->word[i][n] == '\0' && i + 1 < w->count)
			return w->word[i + 1];
	}
	return "";
}

static bool is_daemon(const struct words *w, const char *role)
{
	const char *slash, *name;

	if (w->count < 2 || strcmp(w->word[1], role) != 0)
		return false;
	slash = strrchr(w->word[0], '/');
	name = slash ? slash + 1 : w->word[0];
	return strcmp(name, "aquifer") == 0;
}

/* A process in another network listens there. Whose network cannot be seen
 * counts as ours. */
static bool is_elsewhere(const char *pid)
{
	char path[300], theirs[64], ours[64];
	ssize_t n, m;

	(void)snprintf(path, sizeof(path), "/proc/%.20s/ns/net", pid);
	n = readlink(path, theirs, sizeof(theirs));
	m = readlink("/proc/self/ns/net", ours, sizeof(ours));
	return n > 0 && m > 0 && (n != m || memcmp(theirs, ours, (size_t)n));
}

/* Calls `look` for each daemon of that role. */
static void each_daemon(const char *role, struct listeners *d,
			void (*look)(const struct words *w, const char *pid,
				     struct listeners *d))
{
	struct words *w = malloc(sizeof(*w));
	DIR *dir = opendir("/proc");
	const struct dirent *e;

	while (w && dir && (e = readdir(dir)) != NULL)
		if (e->d_name[0] >= '1' && e->d_name[0] <= '9' &&
		    read_words(e->d_name, w) && is_daemon(w, role) &&
		    !is_elsewhere(e->d_name))
			look(w, e->d_name, d);
	if (dir)
		(void)closedir(dir); /* only read */
	free(w);
}

/* ---- TLS ---------------------------------------------------------------- */

static void look_for_tls(const struct words *w, const char *pid,
			 struct listeners *d)
{
	const char *listen = value_of(w, "--listen");

	if (is_public(listen) && !value_of(w, "--tls-cert")[0])
		add(d, "%s%s (process %s) on %.60s", d->count ? ", " : "",
		    w->word[1], pid, listen);
}

static void look_at_file(struct listeners *d)
{
	static const char *const kinds[] = {"memory", "engine"};
	struct config *c;

	if (config_open(NULL, &c)) /* another check says why */
		return;
	for (unsigned k = 0; k < ARRAY_LEN(kinds); k++)
		for (unsigned i = 0; i < config_named_count(c, kinds[k]); i++) {
			const char *listen =
				config_named_text(c, kinds[k], i, "listen");

			if (is_public(listen) &&
			    !config_named_text(c, kinds[k], i, "tls_cert")[0])
				add(d, "%s[%s %s] on %.60s",
				    d->count ? ", " : "", kinds[k],
				    config_named_name(c, kinds[k], i), listen);
		}
	config_destroy(c);
}

void cli_check_tls(struct cli_check_result *out)
{
	struct listeners d = {0};

	look_at_file(&d);
	each_daemon("memory", &d, look_for_tls);
	each_daemon("engine", &d, look_for_tls);
	if (!d.count) {
		cli_check_found(out, CLI_CHECK_OK,
				"no TCP without TLS that others can reach");
		return;
	}
	cli_check_found(out, CLI_CHECK_WARN, "%u without TLS: %s", d.count,
			d.text);
	cli_check_fix(out, "give tls_cert and tls_key in rack.ini, or "
			   "--tls-cert and --tls-key ('aquifer cert' makes "
			   "them); or listen on a WireGuard address "
			   "(docs/security.md)");
}

/* ---- gateways ----------------------------------------------------------- */

static void look_for_password(const struct words *w, const char *pid,
			      struct listeners *d)
{
	const char *bind = value_of(w, "--bind");

	if (strcmp(value_of(w, "--port"), "none") != 0 && is_public(bind) &&
	    !value_of(w, "--password-file")[0])
		add(d, "%sprocess %s on %.60s", d->count ? ", " : "", pid,
		    bind);
}

void cli_check_password(struct cli_check_result *out)
{
	struct listeners d = {0};

	each_daemon("redis", &d, look_for_password);
	if (!d.count) {
		cli_check_found(out, CLI_CHECK_OK,
				"no gateway that others can reach without a "
				"password");
		return;
	}
	cli_check_found(out, CLI_CHECK_WARN, "%u without a password: %s",
			d.count, d.text);
	cli_check_fix(out, "start it with --password-file FILE, or without "
			   "--bind");
}
