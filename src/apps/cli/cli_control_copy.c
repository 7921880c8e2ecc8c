/* SPDX-License-Identifier: Apache-2.0 */
/* `aquifer control dump` and `load`: a controller's state as a file of JSON
 * lines. It holds hashes of tokens, so it is for its owner alone. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/config.h"
#include "base/error.h"
#include "cli_control.h"
#include "cli_report.h"
#include "ledger/ledger_copy.h"

static bool is_standard(const char *file)
{
	return strcmp(file, "-") == 0;
}

static int failed(const char *file, const char *what)
{
	int err = -errno;

	return error_set(err, "%s: cannot %s: %s", file, what, strerror(-err));
}

/* ---- files -------------------------------------------------------------- */

static int write_all(int fd, const char *file, const char *text, size_t len)
{
	while (len) {
		ssize_t n = write(fd, text, len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return failed(file, "write");
		text += n;
		len -= (size_t)n;
	}
	return 0;
}

/* Nobody ever finds half of it under its name. */
static int write_file(const char *file, const char *text, size_t len)
{
	char *temporary = NULL;
	int fd, err;

	if (is_standard(file))
		return write_all(STDOUT_FILENO, "standard output", text, len);
	if (asprintf(&temporary, "%s.XXXXXX", file) < 0)
		return error_set(-ENOMEM, "no memory for a name");
	fd = mkostemp(temporary, O_CLOEXEC); /* mode 0600 */
	if (fd < 0) {
		err = failed(file, "write there");
		free(temporary);
		return err;
	}
	err = write_all(fd, file, text, len);
	if (!err && (fsync(fd) != 0 || rename(temporary, file) != 0))
		err = failed(file, "write");
	(void)close(fd); /* fsync has told */
	if (err)
		(void)unlink(temporary);
	free(temporary);
	return err;
}

static int read_from(FILE *f, const char *file, char **text, size_t *len)
{
	size_t room = 0;

	for (;;) {
		if (room - *len < 65536) {
			char *more = realloc(*text, room = 2 * room + 131072);

			if (!more)
				return error_set(-ENOMEM, "no memory for %s",
						 file);
			*text = more;
		}
		*len += fread(*text + *len, 1, room - *len, f);
		if (*len > LEDGER_COPY_MAX)
			return error_set(-E2BIG, "%s is too long", file);
		if (ferror(f))
			return failed(file, "read");
		if (feof(f))
			return 0;
	}
}

static int read_file(const char *file, struct ledger_copy *copy)
{
	const char *name = is_standard(file) ? "standard input" : file;
	FILE *f = is_standard(file) ? stdin : fopen(file, "re");
	char *text = NULL;
	size_t len = 0;
	int err;

	if (!f)
		return failed(name, "read");
	err = read_from(f, name, &text, &len);
	if (f != stdin)
		(void)fclose(f); /* only read */
	if (!err && (err = ledger_copy_parse(text, len, copy)))
		err = error_prefix(err, "%s: ", name);
	free(text);
	return err;
}

/* ---- verbs -------------------------------------------------------------- */

static int dump(struct ledger *l, const char *file, struct ledger_copy *copy)
{
	int err = ledger_copy_read(l, copy);
	char *text;
	size_t len;

	if (err)
		return err;
	text = ledger_copy_print(copy, &len);
	err = text ? write_file(file, text, len)
		   : error_set(-EBADMSG, "a row is no JSON, or there is no "
					 "memory");
	free(text);
	return err;
}

/* A file that is not there would be made, and be an empty state. */
static int check_path(const char *store)
{
	const char *path = ledger_path(store);

	return !path || access(path, F_OK) == 0 ? 0 : failed(path, "read");
}

static int copy(const struct ledger_place *place, bool is_dump,
		const char *file, struct ledger_copy *c)
{
	struct ledger *l = NULL;
	int err = is_dump ? check_path(place->store) : read_file(file, c);

	if (!err)
		err = ledger_open(place, &l);
	if (!err)
		err = is_dump ? dump(l, file, c) : ledger_copy_write(l, c);
	if (err == LEDGER_UNKNOWN)
		err = error_set(-EIO,
				"%s: perhaps not all rows were loaded; "
				"do it again",
				place->store);
	else if (err == -EEXIST)
		err = error_prefix(err, "%s: ", place->store);
	ledger_close(l);
	return err;
}

static int open_place(struct cli_control *a, struct config **config,
		      char store[CD_STORE_MAX], struct ledger_place *place)
{
	int err = config_open(NULL, config);

	if (err)
		return err;
	*place = a->serve.place;
	place->rack = config_string(*config, "rack", "name");
	if (place->store)
		return 0;
	place->store = store;
	return cd_store_default(place->rack, a->base.daemon.options.name,
				store);
}

int cli_control_copy(struct cli_control *a, const struct cli_words *words)
{
	bool is_dump = strcmp(words->word[0], "dump") == 0;
	struct config *config = NULL;
	struct ledger_copy c = {0};
	struct ledger_place place;
	char store[CD_STORE_MAX];
	json_t *tree;
	int err;

	if (words->count != 2 ||
	    (!is_dump && strcmp(words->word[0], "load") != 0)) {
		cli_error("control dump FILE and control load FILE, not "
			  "'control %.40s'; see 'aquifer help control'",
			  words->word[0]);
		return CLI_USAGE;
	}
	err = open_place(a, &config, store, &place);
	if (!err)
		err = copy(&place, is_dump, words->word[1], &c);
	if (err)
		cli_error_last(err);
	tree = json_pack("{s:s, s:I, s:I}", is_dump ? "dumped" : "loaded",
			 words->word[1], "rows", (json_int_t)c.rows.count,
			 "term", (json_int_t)c.term);
	if (!err && !(is_dump && is_standard(words->word[1])))
		err = cli_report_print(json_incref(tree), a->base.json);
	json_decref(tree);
	ledger_copy_free(&c);
	config_destroy(config);
	return cli_error_exit(err);
}
