/* SPDX-License-Identifier: Apache-2.0 */
/* doctor: certificates that rack.ini names, and for how long they are valid. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/config.h"
#include "base/config_named.h"
#include "base/error.h"
#include "cert/cert.h"
#include "cli_cert.h"
#include "cli_check.h"

enum {
	WARN_DAYS = 30,
	DAY_S = 24 * 3600,
};

struct seen {
	unsigned count, bad_count;
	long least_days;
	char first[200]; /* that is wrong: which, and why */
};

static void note_bad(struct seen *s, const char *path, const char *why)
{
	if (s->bad_count++ == 0)
		(void)snprintf(s->first, sizeof(s->first), "%.100s: %.80s",
			       path, why);
}

static void look_at(struct seen *s, const char *path)
{
	struct cert_facts f;
	time_t now = time(NULL);
	char words[64];
	char *pem;
	long days;

	if (!path[0])
		return;
	s->count++;
	if (cli_cert_read(path, &pem)) {
		note_bad(s, path, "it cannot be read");
		return;
	}
	if (cert_describe(pem, &f)) {
		note_bad(s, path, "it is no certificate");
		free(pem);
		return;
	}
	free(pem);
	days = (long)((f.not_after - now) / DAY_S);
	if (s->count == 1 || days < s->least_days)
		s->least_days = days;
	if (now > f.not_after || now < f.not_before) {
		note_bad(s, path, "it is not valid now");
	} else if (days < WARN_DAYS) {
		(void)snprintf(words, sizeof(words), "it ends in %ld days",
			       days);
		note_bad(s, path, words);
	}
}

void cli_check_certs(struct cli_check_result *out)
{
	static const struct {
		const char *kind, *key;
	} keys[] = {{"memory", "tls_cert"}, {"memory", "tls_ca"},
		    {"engine", "tls_cert"}, {"engine", "tls_ca"},
		    {"engine", "ca"},	    {"engine", "cert"},
		    {"node", "ca"},	    {"node", "cert"}};
	struct seen s = {0};
	struct config *c;

	if (config_open(NULL, &c)) { /* another check says why */
		cli_check_found(out, CLI_CHECK_OK, "no settings to look at");
		return;
	}
	for (unsigned k = 0; k < ARRAY_LEN(keys); k++)
		for (unsigned i = 0; i < config_named_count(c, keys[k].kind);
		     i++)
			look_at(&s, config_named_text(c, keys[k].kind, i,
						      keys[k].key));
	config_destroy(c);
	if (s.bad_count) {
		cli_check_found(out, CLI_CHECK_WARN,
				"%u of %u, the first is "
				"%s",
				s.bad_count, s.count, s.first);
		cli_check_fix(out, "'aquifer cert issue' makes a new one, and "
				   "SIGHUP lets the daemon take it");
		return;
	}
	if (s.count)
		cli_check_found(out, CLI_CHECK_OK,
				"%u are valid for %ld days or more", s.count,
				s.least_days);
	else
		cli_check_found(out, CLI_CHECK_OK, "rack.ini names none");
}
