/* SPDX-License-Identifier: Apache-2.0 */
/* Feeds every file of the named folders to a fuzz target, once. */
#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#include "fuzz.h"

enum {
	INPUT_MAX = 1 << 20,
};

static int replay_file(const char *path)
{
	uint8_t *data = malloc(INPUT_MAX);
	FILE *f = fopen(path, "rb");
	uint8_t *exact = NULL;
	size_t n;
	int ret = -1;

	if (!data || !f)
		goto out;
	n = fread(data, 1, INPUT_MAX, f);
	if (ferror(f))
		goto out;
	/* No byte more than the input has, so that ASan guards its end. */
	exact = malloc(n ? n : 1);
	if (!exact)
		goto out;
	for (size_t i = 0; i < n; i++)
		exact[i] = data[i];
	ret = LLVMFuzzerTestOneInput(exact, n);
out:
	if (ret)
		perror(path);
	if (f)
		(void)fclose(f); /* only read from */
	free(exact);
	free(data);
	return ret;
}

/* The number of files fed, or -1. */
static int replay_folder(const char *folder)
{
	char path[PATH_MAX];
	struct dirent *entry;
	DIR *dir = opendir(folder);
	int count = 0;

	if (!dir) {
		perror(folder);
		return -1;
	}
	while ((entry = readdir(dir))) {
		int n;

		if (entry->d_name[0] == '.')
			continue;
		n = snprintf(path, sizeof(path), "%s/%s", folder,
			     entry->d_name);
		if (n < 0 || (size_t)n >= sizeof(path) || replay_file(path)) {
			count = -1;
			break;
		}
		count++;
	}
	(void)closedir(dir); /* only read from */
	return count;
}

int main(int argc, char **argv)
{
	int i;

	for (i = 1; i < argc; i++) {
		int count = replay_folder(argv[i]);

		/* An empty corpus tests nothing. */
		if (count <= 0)
			return EXIT_FAILURE;
		printf("%s: %d inputs\n", argv[i], count);
	}
	return argc > 1 ? EXIT_SUCCESS : EXIT_FAILURE;
}
