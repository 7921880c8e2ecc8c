/* SPDX-License-Identifier: Apache-2.0 */
/* What a daemon keeps for the time after the next boot. */
#include "base/statedir.h"
#include "daemon.h"

/* All of the directory above: a file system may be mounted over the rack's own
 * while the daemon runs. */
int daemon_allow_state(struct daemon *d)
{
	char state[STATEDIR_PATH_MAX];
	int err = statedir_make(d->rack, state);

	return err ? err
		   : confine_add_parent(&d->confine, CONFINE_WRITE, state);
}

static struct rack_token_place place_of(const struct daemon *d)
{
	return (struct rack_token_place){d->config, d->rack, d->rundir};
}

int daemon_token(const struct daemon *d, enum rack_token_kind kind,
		 char text[SECRET_TEXT])
{
	const struct rack_token_place place = place_of(d);

	return rack_token_obtain(&place, kind, text);
}

int daemon_token_find(const struct daemon *d, enum rack_token_kind kind,
		      char text[SECRET_TEXT])
{
	const struct rack_token_place place = place_of(d);

	return rack_token_find(&place, kind, text, NULL);
}

int daemon_token_keep(const struct daemon *d, enum rack_token_kind kind,
		      const char *text)
{
	const struct rack_token_place place = place_of(d);

	return rack_token_keep(&place, kind, text);
}
