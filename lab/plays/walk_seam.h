/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where the room traverse/ meets the simulator. The laboratory's copy of it is
 * compiled with this header before all others, and so is walk_rack.c, which
 * defines under the same names what traverse/ calls of a rack: its clock, its
 * regions, and links to memory nodes. All the rest of client/ is as shipped.
 */
#ifndef AQ_PLAYS_WALK_SEAM_H
#define AQ_PLAYS_WALK_SEAM_H

#define aq_rack_deadline	walk_rack_deadline
#define client_call		walk_rack_call
#define client_clock_real	walk_rack_clock
#define client_keep_caller	walk_rack_caller
#define client_keep_device	walk_rack_device
#define client_keep_has_program walk_rack_has_program
#define client_keep_node	walk_rack_node
#define client_keep_now_ns	walk_rack_now_ns
#define client_keep_refresh	walk_region_refresh
#define client_keep_shape	walk_region_shape
#define client_keep_version	walk_region_version
#define client_link_call	walk_link_call
#define client_link_close	walk_link_close
#define client_link_is_lost	walk_link_is_lost
#define client_link_node_name	walk_link_node_name
#define client_link_open_at	walk_link_open_at
#define client_link_why		walk_link_why

#endif
