/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where the room memnode/ meets a simulated switch. The laboratory's copy of it
 * is compiled with this header before all others, and so is walk_switch.c,
 * which defines under the same names how a switch is called.
 */
#ifndef AQ_PLAYS_WALK_NODE_SEAM_H
#define AQ_PLAYS_WALK_NODE_SEAM_H

#define ctl_switch_ask	walk_switch_ask
#define ctl_switch_tell walk_switch_tell

#endif
